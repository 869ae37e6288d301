#include "selector/statistics.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <random>

using namespace kiln::selector;

namespace {

// One arm whose device takes `ms` with log-normal noise.
class NoisyDevice {
 public:
  explicit NoisyDevice(unsigned seed, double noise = 0.1) : random_(seed), noise_(0, noise) {}
  Drift run(double ms) { return average.add(std::log(ms * 1e6 * noise_(random_)), 0.1); }
  double expected_ms() const { return std::exp(average.log_ns.mean) / 1e6; }

  RunAverage average;

 private:
  std::mt19937_64 random_;
  std::lognormal_distribution<double> noise_;
};

}  // namespace

TEST_CASE("selector drift: a threefold slow-down is noticed within 12 runs, and the recovery within 30", "[selector]") {
  const unsigned before = GENERATE(5u, 20u, 1000u);
  CAPTURE(before);
  for (unsigned seed = 0; seed < 100; ++seed) {
    CAPTURE(seed);
    NoisyDevice device(seed);
    for (unsigned i = 0; i < before; ++i) device.run(2);
    int slower = 1;
    while (device.run(6) != Drift::slower && slower < 100) ++slower;
    CHECK(slower <= 12);
    for (int i = 0; i < 20; ++i) device.run(6);
    CHECK(device.expected_ms() == Approx(6).epsilon(0.15));
    int faster = 1;
    while (device.run(2) != Drift::faster && faster < 100) ++faster;
    CHECK(faster <= 30);
    for (int i = 0; i < 10; ++i) device.run(2);
    CHECK(device.expected_ms() == Approx(2).epsilon(0.15));
  }
}

TEST_CASE("selector drift: a device that stays as it is gives at most one false alarm in 10,000 runs", "[selector]") {
  const double noise = GENERATE(0.02, 0.1, 0.3);
  CAPTURE(noise);
  std::uint32_t alarms = 0;
  for (unsigned seed = 0; seed < 10; ++seed) {
    NoisyDevice device(seed, noise);
    for (int i = 0; i < 10'000; ++i) device.run(2);
    alarms += device.average.alarms;
  }
  CHECK(alarms <= 10);
}

TEST_CASE("selector drift: single disturbed runs neither alarm nor carry the average away", "[selector]") {
  NoisyDevice device(1);
  for (int i = 0; i < 2000; ++i) device.run(i % 20 == 19 ? 20 : 2);  // every twentieth takes ten times as long
  CHECK(device.average.alarms == 0);
  CHECK(device.expected_ms() == Approx(2).epsilon(0.2));
}

TEST_CASE("selector drift: an alarm widens the belief and forgets nothing else", "[selector]") {
  NoisyDevice device(3);
  for (int i = 0; i < 50; ++i) device.run(2);
  const double sure = device.average.mean_deviation(0.1);
  int runs = 0;
  while (device.run(6) == Drift::none && runs < 50) ++runs;
  CHECK(device.average.alarms == 1);
  CHECK(device.average.log_ns.count == 51u + static_cast<unsigned>(runs));
  CHECK(device.average.mean_deviation(0.1) > 5 * sure);
  for (int i = 0; i < 30; ++i) device.run(6);
  CHECK(device.average.mean_deviation(0.1) < 2 * sure);
}

TEST_CASE("selector drift: few runs are not certain", "[selector]") {
  NoisyDevice one(1), many(1, 0.05);
  one.run(2);
  for (int i = 0; i < 100; ++i) many.run(2);
  CHECK(RunAverage().mean_deviation(0.1) == Approx(0.3));
  CHECK(one.average.mean_deviation(0.1) > 0.1);
  CHECK(many.average.mean_deviation(0.1) < 0.02);
}
