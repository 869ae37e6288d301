#include "dynamic_shaders/space/cost_model.hpp"

#include "dynamic_shaders/families/implicit.hpp"
#include "dynamic_shaders/families/tile_pixels.hpp"
#include "dynamic_shaders/lane_map.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace kiln::dynamic_shaders {
namespace {

// Registers of addresses, loops and the lane's place: direct/plain, which holds a single sum, takes 43 or 44 as
// clang-19 compiles it for gfx1100.
constexpr double own_registers = 40;

// The chip's own instruction set, as a driver tells it that knows the chip; empty: it does not.
std::string_view isa_of(const DeviceInfo& device) noexcept {
  for (const auto& [key, value] : device.device_identity) {
    if (key == "isa") return value;
  }
  return {};
}

MachineModel rdna_model(const rdna::Facts& facts, rdna::Wave wave) noexcept {
  MachineModel model;
  model.rdna = facts;
  model.wave = wave;
  model.lanes = static_cast<double>(wave);
  // A wave's multiply-adds by what a SIMD can do a clock. Singly: only some of a kernel's terms find their pair.
  const double simd_flops = rdna::roof_gflops(facts, 1, 1, rdna::Issue::single) / rdna::simds_of_processor;
  model.term = 2 * model.lanes / simd_flops;
  model.accumulators = number(facts.most_vgprs) - own_registers;
  // 150 ns at 2.5 GHz: loads of vectors that Navi 31's Infinity Cache answers, measured by Chips and Cheese, "Latency
  // Testing is Hard", 2023.
  model.latency = 375;
  return model;
}

}  // namespace

MachineModel model_of(const DeviceInfo& device) noexcept {
  MachineModel model;
  if (device.kind != DeviceKind::software) {
    if (const auto facts = rdna::facts_of(isa_of(device))) {
      model = rdna_model(*facts, device.simd_lanes == 64 ? rdna::Wave::w64 : rdna::Wave::w32);
    } else {
      model.lanes = device.simd_lanes != 0 ? device.simd_lanes : 32;
    }
    model.wanted_vectors = 2048;
    return model;
  }
  const bool wide = device.simd_lanes >= 16;
  model.lanes = device.simd_lanes != 0 ? device.simd_lanes : 8;
  model.term = wide ? 0.465 : 0.3;
  model.nested = wide ? 0.53 : 0.28;
  model.accumulator = wide ? 0.65 : 0.42;
  model.scalar_load = wide ? 52 : 24;
  model.storage = {wide ? 97.0 : 47.0, 0, 100};
  model.texel = {wide ? 39.0 : 11.3, wide ? 0.0 : 3.3, 65};
  model.image = {wide ? 20.0 : 7.5, wide ? 8.0 : 13.4, 210};
  model.near_bytes = 2e6;
  model.shared_scalar = model.scalar_load;
  model.shared_vector = model.storage.load;
  model.barrier = 200;
  model.scalar_store = wide ? 40 : 62;
  model.vector_store = 36;
  model.pack = 350;
  model.accumulators = wide ? 230 : 128;
  model.spill = 0.38;
  model.held = 60;
  model.crowded = 2.1;
  model.code_terms = 4600;
  model.code = 0.012;
  model.overflow = wide ? 0.62 : 0.7;
  model.dispatch = 2.2e5;
  model.wanted_vectors = 16;
  model.build = 2e8;
  model.build_term = 7e5;
  model.build_image = 2;
  return model;
}

double waited(const MachineModel& model, double held, std::int64_t workgroup, std::int64_t shared) noexcept {
  if (!model.rdna) return 0;
  rdna::Need need;
  need.vgprs = static_cast<std::uint32_t>(std::min(own_registers + held, number(model.rdna->most_vgprs)));
  need.lanes = static_cast<std::uint32_t>(workgroup);
  need.lds_bytes = static_cast<std::uint32_t>(shared);
  // Where not even one workgroup fits, its compiler must do with less: as if one wave had a whole processor.
  const double least = 1.0 / rdna::simds_of_processor;
  return model.latency / std::max(rdna::waves_of_kernel(*model.rdna, need, model.wave, rdna::Mode::wgp), least);
}

const LoadCost& load_of(View view, const MachineModel& model) noexcept {
  if (view == View::texels) return model.texel;
  return view == View::image ? model.image : model.storage;
}

double beyond(double limit, double whole) noexcept { return whole > limit ? 1 - limit / whole : 0; }

double kept(double outputs, double terms, const MachineModel& model) noexcept {
  return (model.accumulator + (outputs > model.accumulators ? model.spill : 0)) / terms;
}

double idle(double vectors, const MachineModel& model) noexcept {
  return std::max(1.0, model.wanted_vectors / std::max(vectors, 1.0));
}

double waited_plain(const MachineModel& model) noexcept { return waited(model, 1, usual_workgroup); }

namespace {

// How many different places along an axis the outputs of a block reach, in grains of so many.
double different(std::int64_t outputs, std::int64_t stride, std::int64_t taps, std::int64_t dilation,
                 std::int64_t grain) {
  std::vector<std::int64_t> found;
  for (std::int64_t output = 0; output < outputs; ++output) {
    for (std::int64_t tap = 0; tap < taps; ++tap) found.push_back((output * stride + tap * dilation) / grain);
  }
  std::sort(found.begin(), found.end());
  return number(std::unique(found.begin(), found.end()) - found.begin());
}

double texels_of_row(const ConvShape& shape, const Blocking& b) {
  return different(b.x, shape.stride_x, shape.s, shape.dilation_x, b.packing == Packing::channels ? 1 : 4);
}

double rows_of_block(const ConvShape& shape, const Blocking& b) {
  if (b.rows == Rows::looped) return number(b.y * shape.r);
  return different(b.y, shape.stride_y, shape.r, shape.dilation_y, 1);
}

}  // namespace

PredictedCost predict(const ConvShape& shape, const Blocking& b, const MachineModel& model) {
  const BlockedExtents extents = extents_of(shape, b);
  PredictedCost cost;
  if (b.packing != Packing::plane) {
    const double vectors = number(extents.activation_texels * shape.n) / model.lanes;
    cost.pack = model.dispatch + vectors * idle(vectors, model) * model.pack;
  }
  const double places = number(extents.blocks_x * extents.blocks_y);
  const double workgroup_vectors = std::ceil(number(b.workgroup) / model.lanes);
  const auto groups = [&] {  // workgroups of one image
    const std::int64_t lanes = shape.groups * extents.k_lanes;
    if (b.lanes != Lanes::places) return places * number(divide_up(lanes, b.workgroup));
    return number(divide_up(extents.blocks_x * extents.blocks_y, b.workgroup) * lanes);
  };
  const double vectors = groups() * workgroup_vectors * number(shape.n);

  const double outputs = number(b.k * b.x * b.y);
  const double step_terms = outputs * number(extents.step_c * shape.r * shape.s);
  const double body_terms =
      b.rows == Rows::looped ? step_terms / number(shape.r) : step_terms * number(extents.round_steps);
  const double activation_loads = texels_of_row(shape, b) * rows_of_block(shape, b);
  const double weight_loads = number(b.k / 4 * extents.step_c * shape.r * shape.s);
  const double rounds = number(b.rows == Rows::looped ? shape.r : 1) / number(extents.round_steps);
  const LoadCost& load = load_of(b.view, model);
  const double code = body_terms + (activation_loads + weight_loads) * load.code * body_terms / step_terms;
  const double term = model.term + (b.rows == Rows::looped && shape.r > 1 ? model.nested : 0) +
                      kept(outputs, number(shape.s * extents.step_c), model) +
                      model.overflow * beyond(model.code_terms, code);
  const double far = number(extents.weight_texels / shape.groups) * 16 > model.near_bytes ? load.far : 0;
  const double guard = b.border == Border::guarded ? 3 : 0;
  // What a round loads of the activations, and a tap's weights.
  const double held = outputs + 4 * activation_loads / rounds + number(b.k * extents.step_c);
  const double step = (activation_loads + weight_loads) * load.load + weight_loads * far + activation_loads * guard +
                      step_terms * term + rounds * (model.round + waited(model, held, b.workgroup));
  const double stores = extents.wide_stores ? outputs / 4 * model.vector_store : outputs * model.scalar_store;
  cost.main = model.dispatch + vectors * idle(vectors, model) * (number(extents.steps) * step + stores);
  cost.build = model.build * (b.packing == Packing::plane ? 2 : 3) +
               body_terms * model.build_term * (b.view == View::image ? model.build_image : 1);
  return cost;
}

PredictedCost predict_winograd(const Conv2dSpec& spec, const WinogradShape& shape, const Blocking& b,
                               const MachineModel& model) {
  PredictedCost cost = predict(shape.products, b, model);
  const double points = number(shape.t * shape.t);
  const double load = load_of(b.view, model).load;
  const TileAccess in = input_access(spec, shape, b.view, Form()), out = output_access(spec, shape, Form());
  // A float under a condition of its own costs several without.
  const double loads = number(in.moves) * (in.fours ? load : (in.rows ? 1 : 4) * model.scalar_load);
  const double sums =
      2 * points * number(shape.t) * 0.7 * 4 * (model.term + model.accumulator);  // a vector of four tiles each
  const double in_vectors = number(shape.quads * spec.c * spec.n) / model.lanes;
  const double out_vectors = number(shape.quads * spec.k * spec.n) / model.lanes;
  const double stores = number(out.moves) * (out.fours ? model.vector_store : (out.rows ? 1 : 4) * model.scalar_store);
  cost.pack = 2 * model.dispatch + in_vectors * idle(in_vectors, model) * (loads + sums + points * model.vector_store) +
              out_vectors * idle(out_vectors, model) * (points * load + sums + stores);
  cost.build += 2 * model.build + points * 60 * model.build_term;
  return cost;
}

PredictedCost predict_depthwise(const Conv2dSpec& spec, const Depthwise& choice, const MachineModel& model) {
  const bool planes = choice.planes != 0;
  const std::int64_t out_h = spec.out_h(), out_w = spec.out_w();
  const bool bands = choice.rows != 0;
  const double outputs = number(planes  ? choice.planes * out_h * out_w
                                : bands ? choice.rows * out_w
                                        : choice.x * choice.y);
  const double row_texels =
      planes || bands ? number(spec.w) / 4 : different(choice.x, spec.stride_x, spec.s, spec.dilation_x, 4);
  double texels = number(choice.planes * spec.h * spec.w) / 4;
  if (bands) {
    texels = different(choice.rows, spec.stride_y, spec.r, spec.dilation_y, 1) * number(spec.w) / 4 + 1;
  } else if (!planes) {
    texels = (row_texels + (spec.pad_x != 0 ? 1 : 0)) * different(choice.y, spec.stride_y, spec.r, spec.dilation_y, 1);
  }
  const double weights = number((planes ? choice.planes : 1) * spec.r * spec.s) * model.scalar_load;
  const double terms = outputs * number(spec.r * spec.s);
  const double lanes = number(planes  ? spec.c / choice.planes
                              : bands ? spec.c * (out_h / choice.rows)
                                      : spec.c * divide_up(out_w, choice.x) * divide_up(out_h, choice.y));
  const double vectors = std::ceil(lanes / model.lanes) * number(spec.n);
  const double term =
      model.term + kept(outputs, number(spec.r * spec.s), model) + model.crowded * beyond(model.held, outputs);
  const LoadCost& load = load_of(choice.view, model);
  // There is no loop: a lane waits once. It holds the rows of one output, the weights, and four outputs.
  const double held = 4 * row_texels * number(spec.r) + number(spec.r * spec.s) + 4;
  PredictedCost cost;
  cost.main =
      model.dispatch + vectors * idle(vectors, model) *
                           (texels * (load.load + load.code * model.code + (planes || bands ? 0 : 1)) + weights +
                            terms * term + outputs / 4 * model.vector_store + waited(model, held, usual_workgroup));
  cost.build = model.build + terms * model.build_term * (choice.view == View::image ? model.build_image : 1);
  return cost;
}

PredictedCost predict_implicit(const Conv2dSpec& spec, const ImplicitTile& t, const MachineModel& model) {
  const ImplicitExtents e = extents_of(spec, t);
  const double lanes = number(t.lanes_k * t.lanes_p), outputs = number(t.k * t.pixels), quads = number(t.k / 4);
  const double vectors = number(e.tiles_p * e.tiles_k * spec.groups * spec.n) * std::ceil(lanes / model.lanes);
  const double terms = outputs * (model.term + kept(outputs, 1, model) +
                                  model.overflow * beyond(model.code_terms, outputs * number(t.depth)));
  const double pixel = model.scalar_load + 2;  // and the choice of a border's zero
  double loads = number(t.pixels) * pixel + quads * model.storage.load;
  double step = 10 + waited(model, outputs + number(t.pixels + t.k), t.lanes_k * t.lanes_p, shared_bytes(t));
  if (t.staging == Staging::shared) {
    const double share_k = number(t.lanes_k);
    loads = number(t.pixels) / share_k * (pixel + model.shared_scalar) +
            number(e.tile_k) / 4 / lanes * (model.storage.load + model.shared_vector) +
            number(t.pixels) * model.shared_scalar + quads * model.shared_vector;
    step += 2 * model.barrier;
  }
  PredictedCost cost;
  cost.main = model.dispatch + vectors * idle(vectors, model) *
                                   (number(e.taps * e.packed_c) * (loads + terms) + number(e.taps * e.steps) * step +
                                    outputs * model.scalar_store);
  cost.build = 2 * model.build + outputs * number(t.depth) * model.build_term;
  return cost;
}

PredictedCost predict_plain(const ConvShape& shape, const MachineModel& model) {
  const double vectors = number(shape.n * shape.groups * shape.k * shape.out_h * shape.out_w) / model.lanes;
  PredictedCost cost;
  const double terms = number(shape.c * shape.r * shape.s) * (2 * model.scalar_load + model.term + waited_plain(model));
  cost.main = model.dispatch + vectors * idle(vectors, model) * (terms + model.scalar_store);
  cost.build = model.build;
  return cost;
}

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
