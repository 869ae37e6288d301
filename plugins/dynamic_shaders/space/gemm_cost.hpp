// What a product through shared memory will cost, in the terms and figures of cost_model.hpp.
//
// Thread-safety: pure functions. Ownership: values.
#pragma once

#include "dynamic_shaders/families/product/gemm_shared.hpp"
#include "dynamic_shaders/space/cost_model.hpp"

namespace kiln::dynamic_shaders {

PredictedCost predict_gemm_shared(const GemmSpec& spec, const GemmTile& tile, const MachineModel& model) noexcept;

// Where shared memory costs what all memory costs, as on llvmpipe, a copy there gains nothing: such a device tries it
// when it is tuned, and never unmeasured.
bool sharing_pays(const MachineModel& model) noexcept;

}  // namespace kiln::dynamic_shaders
