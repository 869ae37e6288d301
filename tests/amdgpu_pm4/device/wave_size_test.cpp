// Waves of 32 and of 64 lanes from one text: OpenCL C is compiled to waves of 32 here, so the code object of waves of
// 64 comes from the machine's compiler with one argument more, as one that somebody built ahead of time would.
#include <catch2/catch.hpp>

#include "amdgpu_pm4/toolchain/toolchain.hpp"
#include "amdgpu_pm4/winsys/chip.hpp"
#include "device/opened_device.hpp"
#include "toolchain/fake_compiler.hpp"
#include "winsys/simulated_node.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

constexpr std::size_t group_lanes = 128, wave_groups = 6, wave_lanes_total = group_lanes * wave_groups;

// Lanes of a wave take different numbers of rounds, keep private memory, and hand results to other waves by LDS. The
// number of a lane in its wave tells how long the wave is.
const char* const wave_teller = R"(
__attribute__((reqd_work_group_size(128, 1, 1)))
kernel void work(global const float* x, global float* y) {
  local float shared[128];
  volatile float kept[16];
  const uint at = get_local_id(0);
  for (uint i = 0; i < 16; ++i) kept[i] = x[(get_global_id(0) + i) % 768];
  float sum = 0;
  for (uint i = 0; i <= at % 16; ++i) sum += kept[i];
  shared[at] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  const uint lane = __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0));
  y[get_global_id(0)] = shared[127 - at] + 65536 * (float)lane;
}
)";

std::vector<float> told_by(const std::vector<float>& x, std::size_t wave_lanes) {
  std::vector<float> expected(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t group = i / group_lanes, other = group_lanes - 1 - i % group_lanes;
    for (std::size_t k = 0; k <= other % 16; ++k) expected[i] += x[(group * group_lanes + other + k) % x.size()];
    expected[i] += 65536 * static_cast<float>(i % group_lanes % wave_lanes);
  }
  return expected;
}

// The source with its text compiled to waves of 64 lanes.
KernelSource in_waves_of_64(KernelSource source) {
  const auto winsys = open_simulated_node();
  const auto chip = identify_chip(winsys->facts().family, winsys->facts().external_revision);
  REQUIRE(chip.has_value());
  const FakeCompiler scripts;
  ToolchainSettings settings;
  settings.place = CompilerPlace::child;
  settings.program = scripts.write("clang-64", "exec clang-19 -mwavefrontsize64 \"$@\"");
  const auto toolchain = open_toolchain(settings, nullptr, {});
  REQUIRE(toolchain.has_value());
  const auto compiled = compile_kernel(**toolchain, source, "waves", chip->target, soon());
  INFO((compiled ? std::string() : compiled.error().text()));
  REQUIRE(compiled.has_value());
  source.dialect = Dialect::code_object;
  source.text.assign(reinterpret_cast<const char*>(compiled->object.data()), compiled->object.size());
  return source;
}

}  // namespace

TEST_CASE("device: waves of 32 and of 64 lanes run in one submission, each as long as its code says") {
  if (!OpenedDevice::possible()) return;
  OpenedDevice d;
  KernelSource source = kernel_of(wave_teller, {Access::read, Access::write});
  source.workgroup = {group_lanes, 1, 1};
  const auto short_waves = d.build(source), long_waves = d.build(in_waves_of_64(source));
  CHECK(d.counters.builds == 1);  // the code object is taken as it is
  const std::vector<float> values = counting(wave_lanes_total);
  const auto x = d.buffer(BufferUsage::upload, values);
  std::vector<std::unique_ptr<Buffer>> results;
  std::vector<std::array<Buffer*, 2>> bindings;
  for (int i = 0; i < 4; ++i) {
    results.push_back(d.buffer(BufferUsage::readback, std::vector<float>(wave_lanes_total, -1.0F)));
    bindings.push_back({x.get(), results.back().get()});
  }
  std::vector<PassLaunch> passes;
  for (std::size_t i = 0; i < 4; ++i) {
    passes.push_back({i % 2 == 0 ? short_waves.get() : long_waves.get(), bindings[i], {wave_groups, 1, 1}});
  }
  const auto value = d.device->submit({passes});
  INFO((value ? std::string() : value.error().text()));
  REQUIRE(value.has_value());
  REQUIRE(d.device->wait(*value, Deadline::after(std::chrono::seconds(60))).has_value());
  for (std::size_t i = 0; i < 4; ++i) CHECK(d.read(*results[i]) == told_by(values, i % 2 == 0 ? 32 : 64));
}

}  // namespace kiln::amdgpu_pm4
