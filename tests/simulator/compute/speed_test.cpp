// How long a wave instruction takes: hidden, for figures depend on what else the machine does. Run it with [speed].
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdio>

#include "tests/simulator/compute/launcher.hpp"

namespace kiln::simulator::test {
namespace {

struct Speed {
  double ns_per_instruction = 0;  // of wall time
  std::uint64_t instructions = 0;
};

// A convolution of 32 channels to 32 over 64x64, several times; the best.
Speed measure(const std::string& target, unsigned threads, VectorChoice vectors) {
  const std::optional<KernelCode> code = kept_kernel(target, "conv3x3");
  REQUIRE(code);
  Launcher launcher({.threads = threads, .vectors = vectors});
  constexpr std::uint32_t channels = 32, side = 64, filters = 32, size = side * side;
  const std::vector<float> in(channels * size, 0.5F), weights(filters * channels * 9, 0.25F);
  const std::uint64_t out = launcher.memory.allocate(filters * size * 4);
  Arguments arguments;
  arguments.add(launcher.memory.allocate(in)).add(launcher.memory.allocate(weights)).add(out);
  arguments.add(channels).add(side).add(side);
  const DispatchState state = launcher.prepare(*code, arguments, {{size / 64, filters / 4, 1}, {64, 1, 1}});
  Speed best;
  for (unsigned i = 0; i < 7; ++i) {
    const std::uint64_t before = launcher.engine.counters().instructions;
    const auto begin = std::chrono::steady_clock::now();
    REQUIRE_FALSE(launcher.engine.run_dispatch(state, launcher.memory));
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    const std::uint64_t done = launcher.engine.counters().instructions - before;
    const double each = took.count() / static_cast<double>(done);
    if (best.instructions == 0 || each < best.ns_per_instruction) best = {each, done};
  }
  CHECK(launcher.memory.values<float>(out + (size / 2 + side / 2) * 4, 1)[0] == channels * 9 * 0.125F);
  return best;
}

}  // namespace

TEST_CASE("simulator speed: convolution", "[.][speed]") {
  for (const std::string target : {"gfx1100", "gfx1030"}) {
    const Speed one = measure(target, 1, VectorChoice::best), two = measure(target, 2, VectorChoice::best);
    const Speed portable = measure(target, 1, VectorChoice::portable);
    std::printf("%s: %.2f ns an instruction on one thread (%.1f M of them), %.2f on two (%.2fx), %.2f portable\n",
                target.c_str(), one.ns_per_instruction, static_cast<double>(one.instructions) / 1e6,
                two.ns_per_instruction, one.ns_per_instruction / two.ns_per_instruction, portable.ns_per_instruction);
    CHECK(one.instructions == two.instructions);
  }
}

}  // namespace kiln::simulator::test
