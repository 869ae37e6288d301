// When a winner counts as slower than it was, on runs that the test makes up.
#include "dynamic_shaders/generator.hpp"

#include <catch2/catch.hpp>

namespace kiln::dynamic_shaders {
namespace {

// Runs of one shape's winner, "fast", which took 1000 ns when it won.
struct Runs {
  DriftWatch watch;
  Conv2dSpec spec;
  std::uint64_t revision = 0;
  int lookups = 0;
  std::uint64_t now_ns = 1'000'000'000'000, between_ns = 1'000'000'000;

  bool run(std::uint64_t device_ns, std::string_view variant = "fast", const std::string& device = "opengl:0") {
    now_ns += between_ns;
    return watch.drifts(device, spec, revision, variant, device_ns, now_ns, [this] {
      ++lookups;
      return DriftWatch::Winner{"fast", 1000};
    });
  }
  // How many of `runs` in a row were told of.
  int told(std::uint32_t runs, std::uint64_t device_ns, std::string_view variant = "fast") {
    int count = 0;
    for (std::uint32_t i = 0; i < runs; ++i) count += run(device_ns, variant);
    return count;
  }
};

}  // namespace

TEST_CASE("dynamic_shaders::drift: told with the eighth slow run in a row, once, at the cost of one lookup") {
  Runs runs;
  CHECK(runs.told(DriftWatch::slow_runs - 1, 1501) == 0);
  CHECK(runs.run(1501));
  CHECK(runs.told(100, 9000) == 0);
  CHECK(runs.lookups == 1);
}

TEST_CASE("dynamic_shaders::drift: a run of the usual time begins the count anew, and other variants' do not count") {
  Runs runs;
  for (int round = 0; round < 20; ++round) {
    CHECK(runs.told(DriftWatch::slow_runs - 1, 5000) == 0);
    CHECK_FALSE(runs.run(1500));
  }
  CHECK(runs.told(100, 5000, "another") == 0);
  CHECK(runs.told(DriftWatch::slow_runs, 5000) == 1);
}

TEST_CASE("dynamic_shaders::drift: slow runs count once they have lasted, however many they are") {
  Runs runs;
  runs.between_ns = 1'000'000;
  CHECK(runs.told(1000, 5000) == 0);  // a process that has just begun, or a machine that is slow for one second
  CHECK_FALSE(runs.run(1000));
  CHECK(runs.told(5000, 5000) == 0);
  CHECK(runs.run(5000));  // five seconds from the first
}

TEST_CASE("dynamic_shaders::drift: devices, shapes and revisions are watched apart") {
  Runs runs;
  CHECK(runs.told(DriftWatch::slow_runs - 1, 5000) == 0);
  CHECK_FALSE(runs.run(5000, "fast", "opengl:1"));
  runs.spec.pad_x = 1;
  CHECK_FALSE(runs.run(5000));
  runs.spec.pad_x = 0;
  CHECK(runs.lookups == 3);
  runs.revision = 1;  // tuned again: nothing of before counts
  CHECK(runs.told(DriftWatch::slow_runs - 1, 5000) == 0);
  CHECK(runs.run(5000));
  CHECK(runs.lookups == 4);
}

TEST_CASE("dynamic_shaders::drift: a shape without a winner is never told of") {
  DriftWatch watch;
  for (int i = 0; i < 100; ++i)
    CHECK_FALSE(watch.drifts("opengl:0", Conv2dSpec{}, 0, "fast", 5000, static_cast<std::uint64_t>(i) * 1'000'000'000,
                             [] { return DriftWatch::Winner{}; }));
}

}  // namespace kiln::dynamic_shaders
