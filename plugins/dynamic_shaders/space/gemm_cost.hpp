// What a product of matrices will cost, in the terms and figures of cost_model.hpp.
//
// Thread-safety: pure functions. Ownership: values.
#pragma once

#include "dynamic_shaders/families/gemm_blocked.hpp"
#include "dynamic_shaders/families/gemm_shared.hpp"
#include "dynamic_shaders/space/cost_model.hpp"

namespace kiln::dynamic_shaders {

// Of gemm/blocked, gemm/shared and gemm/plain.
PredictedCost predict_gemm(const GemmSpec& spec, const GemmBlocking& blocking, const MachineModel& model);
PredictedCost predict_gemm_shared(const GemmSpec& spec, const GemmTile& tile, const MachineModel& model);
PredictedCost predict_gemm_plain(const GemmSpec& spec, const MachineModel& model);

// Where shared memory costs what all memory costs, as on llvmpipe, a copy there gains nothing: such a device tries it
// when it is tuned; it is never the model's first choice.
bool sharing_pays(const MachineModel& model) noexcept;

}  // namespace kiln::dynamic_shaders
