#include "dynamic_shaders/space/cost_model.hpp"

#include "dynamic_shaders/lane_map.hpp"

#include <algorithm>

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

}  // namespace kiln::dynamic_shaders
