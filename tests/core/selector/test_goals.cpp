// The selector's simulated goals in short: a few seeds of what benchmarks/selector.cpp shows for a hundred.
#include "core/selector/candidates.hpp"
#include "core/selector/simulated_world.hpp"
#include "support/test_length.hpp"

#include <catch2/catch.hpp>

using namespace kiln;
using namespace kiln::test;

TEST_CASE("selector goals: right after 8 visits, little regret, little exploring, however times are drawn",
          "[selector][unsanitized]") {
  const Times times = GENERATE(Times::affine, Times::independent);
  const std::size_t devices = GENERATE(2u, 4u);
  CAPTURE(static_cast<int>(times), devices);
  std::size_t right = 0, asked = 0;
  for (std::uint64_t seed = 0; seed < (is_sanitized ? 1 : 3); ++seed) {
    CAPTURE(seed);
    const auto selector = selector_of("learning");
    const VisitFigures figures = visit(*selector, simulated_world(times, devices, 64, seed), 200, 8, 0.1, seed);
    right += figures.right;
    asked += figures.asked;
    CHECK(figures.regret() <= 0.05);
    CHECK(figures.explored() <= 0.02);
    CHECK(figures.most_looks <= 3);
  }
  CHECK(static_cast<double>(right) >= 0.95 * static_cast<double>(asked));
}

TEST_CASE("selector goals: worlds in which the first few times deceive", "[selector][unsanitized]") {
  // Few points met well by chance, or the one device that is looked at first being slow at the largest shapes.
  const auto [times, seed] = GENERATE(table<Times, std::uint64_t>({{Times::independent, 31},
                                                                   {Times::independent, 45},
                                                                   {Times::independent, 57},
                                                                   {Times::affine, 71},
                                                                   {Times::affine, 58}}));
  CAPTURE(static_cast<int>(times), seed);
  if (is_sanitized && seed != 31) return;
  const auto selector = selector_of("learning");
  const VisitFigures figures = visit(*selector, simulated_world(times, 4, 64, seed), 200, 8, 0.1, seed);
  CHECK(static_cast<double>(figures.right) >= 0.95 * static_cast<double>(figures.asked));
  CHECK(figures.regret() <= 0.05);
}

TEST_CASE("selector goals: shapes that were never run are expected within a quarter, and served by the right device",
          "[selector]") {
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    const UnseenFigures figures = judge_unseen(simulated_world(Times::affine, 3, 64, seed), 0.1, seed);
    CAPTURE(seed, figures.median_error, figures.slower);
    CHECK(figures.median_error <= 0.25);
    CHECK(figures.slower <= 0.10);
  }
}

TEST_CASE("selector goals: with names and kinds swapped, the choice follows the times", "[selector]") {
  for (const bool swapped : {false, true}) {
    SimulatedWorld world = simulated_world(Times::affine, 2, 16, 7);
    world.devices[0].kind = DeviceKind::cpu, world.devices[0].name = "cores";
    world.devices[1].kind = DeviceKind::gpu, world.devices[1].name = "card";
    if (swapped) {
      std::swap(world.devices[0].kind, world.devices[1].kind);
      std::swap(world.devices[0].name, world.devices[1].name);
      std::swap(world.devices[0].id, world.devices[1].id);
    }
    const auto selector = selector_of("learning");
    const VisitFigures figures = visit(*selector, world, 40, 8, 0.1, 7);
    CHECK(static_cast<double>(figures.right) >= 0.95 * static_cast<double>(figures.asked));
  }
}
