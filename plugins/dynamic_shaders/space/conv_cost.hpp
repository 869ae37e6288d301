// What a convolution will cost, in the terms and figures of cost_model.hpp.
//
// Thread-safety: pure functions. Ownership: values.
#pragma once

#include "dynamic_shaders/families/blocking.hpp"
#include "dynamic_shaders/families/depthwise.hpp"
#include "dynamic_shaders/families/implicit.hpp"
#include "dynamic_shaders/families/winograd.hpp"
#include "dynamic_shaders/space/cost_model.hpp"

namespace kiln::dynamic_shaders {

// Of direct/blocked.
PredictedCost predict(const ConvShape& shape, const Blocking& blocking, const MachineModel& model);
// Of winograd/f2 and f4; `blocking` is of the products.
PredictedCost predict_winograd(const Conv2dSpec& spec, const WinogradShape& shape, const Blocking& blocking,
                               const MachineModel& model);
// Of depthwise/planes, bands and blocked.
PredictedCost predict_depthwise(const Conv2dSpec& spec, const Depthwise& choice, const MachineModel& model);
// Of implicit/registers and implicit/shared.
PredictedCost predict_implicit(const Conv2dSpec& spec, const ImplicitTile& tile, const MachineModel& model);
// Of direct/plain.
PredictedCost predict_plain(const ConvShape& shape, const MachineModel& model);

}  // namespace kiln::dynamic_shaders
