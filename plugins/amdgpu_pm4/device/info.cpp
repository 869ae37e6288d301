#include "amdgpu_pm4/device/info.hpp"

#include <algorithm>

#include "amdgpu_pm4/winsys/placement.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

constexpr std::uint32_t workgroup_lanes = 1024;
constexpr std::uint32_t workgroup_shared_bytes = 64 * 1024;
constexpr std::uint32_t wave_lanes = 32;
constexpr std::uint32_t bindings = 64;  // a bound of this plugin: they lie in memory

std::string name_of(const NodeFacts& facts, const Chip& chip) {
  std::string name = facts.marketing_name.empty() ? "AMD " + std::string(chip.name) : facts.marketing_name;
  return name + " (" + std::string(chip.isa) + ", " + std::to_string(facts.compute_units) + " compute units)";
}

}  // namespace

bool is_simulated(const NodeVersion& version) {
  return version.description.find("kiln-simulated") != std::string::npos;
}

std::string driver_words(const NodeVersion& version) {
  return version.name + " " + version.number + " (" + version.description + ")";
}

DeviceInfo describe_device(const NodeVersion& version, const NodeFacts& facts, const Chip& chip,
                           const std::string& toolchain) {
  DeviceInfo info;
  const bool simulated = is_simulated(version);
  info.kind = simulated ? DeviceKind::simulated : DeviceKind::gpu;
  info.name = name_of(facts, chip);
  info.driver = driver_words(version);
  info.usable = true;
  info.device_identity = {{"isa", std::string(chip.isa)},
                          {"target", std::string(to_string(chip.target))},
                          {"family", std::to_string(facts.family)},
                          {"revision", std::to_string(facts.external_revision)},
                          {"compute_units", std::to_string(facts.compute_units)},
                          {"simulated", simulated ? "yes" : "no"}};
  info.driver_identity = {
      {"kernel", version.name + " " + version.number}, {"libdrm", facts.library}, {"toolchain", toolchain}};
  info.dialects = {Dialect::opencl_c, Dialect::code_object};
  if (simulated) info.shared_resource = "host-cores";
  info.serializes = true;
  info.shares_memory = true;
  info.max_grid = {0x7fffffff, 65535, 65535};
  info.max_workgroup = {workgroup_lanes, workgroup_lanes, workgroup_lanes};
  info.max_workgroup_lanes = workgroup_lanes;
  info.max_bindings = bindings;
  info.max_buffer_bytes = most_bytes(BufferUse::readback, facts.memory);
  for (const BufferUse use : {BufferUse::upload, BufferUse::storage, BufferUse::constant}) {
    info.max_buffer_bytes = std::min(info.max_buffer_bytes, most_bytes(use, facts.memory));
  }
  info.max_shared_bytes = workgroup_shared_bytes;
  info.simd_lanes = wave_lanes;
  // A simulation runs at the pace of the host's cores: what a chip could do is no bound for it, and no praise either.
  if (!simulated) {
    info.roof_gflops = 2.0 * facts.compute_units * chip.lanes_a_clock * static_cast<double>(facts.engine_khz) / 1e6;
  }
  info.driver_cache = "none";
  return info;
}

}  // namespace kiln::amdgpu_pm4
