#include "dynamic_shaders/space/gemm_cost.hpp"

#include "dynamic_shaders/space/conv_cost.hpp"

#include <cmath>

namespace kiln::dynamic_shaders {

PredictedCost predict_gemm(const GemmSpec& spec, const GemmBlocking& b, const MachineModel& model) {
  const std::int64_t quads = quads_of(spec);
  const bool deep = spec.k % 4 == 0;
  const double depths = deep ? 4 : 1;
  const double workgroups = number(divide_up(quads, b.workgroup * b.quads)) * number(divide_up(spec.m, b.rows));
  const double vectors = workgroups * std::ceil(number(b.workgroup) / model.lanes);
  const double outputs = number(4 * b.rows * b.quads);
  const double terms = outputs * depths;
  const LoadCost& load = load_of(b.view, model);
  const double row_load = deep ? load.load : model.scalar_load;
  const double column_loads = depths * number(b.quads);
  const double code = terms + (number(b.rows) + column_loads) * load.code;
  const double term = model.term + kept(outputs, depths, model) + model.overflow * beyond(model.code_terms, code);
  const double held = outputs + number(b.rows) * depths + 4 * column_loads;
  const double step =
      number(b.rows) * row_load + column_loads * load.load + terms * term + 10 + waited(model, held, b.workgroup);
  const double stores = spec.n % 4 == 0 ? outputs / 4 * model.vector_store : outputs * model.scalar_store;
  PredictedCost cost;
  cost.main = model.dispatch + vectors * idle(vectors, model) * (number(spec.k) / depths * step + stores);
  cost.build = model.build * (spec.n % 4 == 0 ? 1 : 2) +
               terms * model.build_term * (b.view == View::image ? model.build_image : 1);
  return cost;
}

// It is the implicit product of a convolution of one tap: rows are its filters, columns its pixels. What differs: four
// rows of the first factor are loaded one by one, where weights are packed for that, and no pass packs them.
PredictedCost predict_gemm_shared(const GemmSpec& spec, const GemmTile& t, const MachineModel& model) {
  Conv2dSpec product;
  product.k = spec.m, product.c = spec.k, product.h = 1, product.w = spec.n, product.r = product.s = 1;
  MachineModel staging = model;
  staging.storage.load = 4 * (model.scalar_load + 2);  // each with the choice of a zero beyond an edge
  PredictedCost cost =
      predict_implicit(product, {Staging::shared, t.rows, t.columns, t.lanes_r, t.lanes_c, t.depth}, staging);
  const double passes = number(passes_of(spec, t));
  cost.main += (passes - 1) * model.dispatch;
  cost.build = passes * (cost.build - model.build);
  return cost;
}

PredictedCost predict_gemm_plain(const GemmSpec& spec, const MachineModel& model) {
  const double vectors = number(spec.m * spec.n) / model.lanes;
  PredictedCost cost;
  const double terms = number(spec.k) * (2 * model.scalar_load + model.term + waited_plain(model));
  cost.main = model.dispatch + vectors * idle(vectors, model) * (terms + model.scalar_store);
  cost.build = model.build;
  return cost;
}

bool sharing_pays(const MachineModel& model) noexcept { return model.shared_scalar < model.scalar_load; }

}  // namespace kiln::dynamic_shaders
