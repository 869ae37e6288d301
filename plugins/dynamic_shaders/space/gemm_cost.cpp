#include "dynamic_shaders/space/gemm_cost.hpp"

namespace kiln::dynamic_shaders {

// It is the implicit product of a convolution of one tap: rows are its filters, columns its pixels. What differs: four
// rows of the first factor are loaded one by one, where weights are packed for that, and no pass packs them.
PredictedCost predict_gemm_shared(const GemmSpec& spec, const GemmTile& t, const MachineModel& model) noexcept {
  Conv2dSpec product;
  product.k = spec.m, product.c = spec.k, product.h = 1, product.w = spec.n, product.r = product.s = 1;
  MachineModel staging = model;
  staging.storage.load = 4 * (model.scalar_load + 2);  // each with the choice of a zero beyond an edge
  PredictedCost cost =
      predict_implicit(product, {Staging::shared, t.rows, t.columns, t.lanes_r, t.lanes_c, t.depth}, staging);
  const double passes = static_cast<double>(passes_of(spec, t));
  cost.main += (passes - 1) * model.dispatch;
  cost.build = passes * (cost.build - model.build);
  return cost;
}

bool sharing_pays(const MachineModel& model) noexcept { return model.shared_scalar < model.scalar_load; }

}  // namespace kiln::dynamic_shaders
