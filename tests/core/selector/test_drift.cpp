#include "selector/statistics.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <random>
#include <utility>

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

// A hundred runs of e^10 ns, with a deviation of 0.1; the guess, as one more, makes it 0.10388.
RunAverage settled() {
  RunAverage average;
  average.log_ns = {10, 0.01, 100};
  average.weight = 100;
  return average;
}

// The other side of the mean.
RunAverage mirrored(RunAverage average) {
  std::swap(average.slower, average.faster);
  for (Excursion* side : {&average.slower, &average.faster}) {
    side->total = 20 * side->runs - side->total;
    side->far_total = 20 * side->far_runs - side->far_total;
  }
  return average;
}

}  // namespace

// By hand, from the state before the run: a run of e^10.25 is 2.407 deviations off and not far; e^10.3 is 2.888 off.
TEST_CASE("selector drift: after an alarm the mean is of the runs since the change, or of the far ones among them",
          "[selector]") {
  struct Case {
    Excursion before;
    double log_ns, mean;
    std::uint64_t weight;
  };
  for (const Case& one : {
           Case{{9.5, 30.6, 3, 0, 0}, 10.25, 10.2125, 4},  // (30.6 + 10.25) / 4
           Case{{9.5, 30.6, 3, 0, 0}, 10.3, 10.225, 4},    // one far run is not sudden: 40.9 / 4
           Case{{9.5, 30.6, 3, 10.5, 1}, 10.3, 10.4, 2},   // two are: 20.8 / 2
           Case{{9.5, 30.6, 3, 21.2, 2}, 10.25, 10.6, 2},  // this one is not far
       }) {
    CAPTURE(one.before.far_runs, one.log_ns);
    RunAverage average = settled();
    average.slower = one.before;
    RunAverage other = mirrored(average);
    CHECK(average.add(one.log_ns, 0.1) == Drift::slower);
    CHECK(other.add(20 - one.log_ns, 0.1) == Drift::faster);
    CHECK(average.log_ns.mean == Approx(one.mean));
    CHECK(other.log_ns.mean == Approx(20 - one.mean));
    for (const RunAverage& found : {average, other}) {
      CHECK(found.log_ns.count == 101);
      CHECK(found.log_ns.variance == 0.01);
      CHECK(found.weight == one.weight);
      CHECK(found.widening == Approx((one.mean - 10) * (one.mean - 10) / 4));
      CHECK(found.alarms == 1);
      CHECK(found.slower.sum == 0);
      CHECK(found.faster.sum == 0);
    }
  }
}

TEST_CASE("selector drift: what each run changes", "[selector]") {
  RunAverage average = settled();
  average.widening = 0.04;
  SECTION("a usual one: the mean and the spread follow by alpha") {
    CHECK(average.add(10.05, 0.1) == Drift::none);
    CHECK(average.log_ns.mean == Approx(10.005));
    CHECK(average.log_ns.variance == Approx(0.9 * (0.01 + 0.1 * 0.05 * 0.05)));
    CHECK(average.slower.sum == 0);  // within the slack
    CHECK(average.slower.runs == 0);
  }
  SECTION("a far one: three deviations count") {
    CHECK(average.add(12, 0.1) == Drift::none);
    CHECK(average.log_ns.mean == Approx(10 + 0.1 * 3 * 0.103884932536).epsilon(1e-8));
    CHECK(average.slower.sum == Approx(3));  // it is cut at four, less the slack
    CHECK(average.slower.total == 12);
    CHECK(average.slower.runs == 1);
    CHECK(average.slower.far_total == 12);
    CHECK(average.slower.far_runs == 1);
    CHECK(average.faster.runs == 0);
  }
  SECTION("a far one after others is held back") {
    average.slower = {2, 20.5, 2, 0, 0};
    CHECK(average.add(10.3, 0.1) == Drift::none);
    CHECK(average.log_ns.mean == 10);
    CHECK(average.log_ns.variance == 0.01);
    CHECK(average.slower.runs == 3);
  }
  SECTION("a far one after a lesser sum is not") {
    average.slower = {1, 10.3, 1, 0, 0};
    CHECK(average.add(10.3, 0.1) == Drift::none);
    CHECK(average.log_ns.mean == Approx(10.03));
  }
  SECTION("one that is not far is not") {
    average.slower = {5, 51, 5, 0, 0};
    CHECK(average.add(10.25, 0.1) == Drift::none);
    CHECK(average.log_ns.mean == Approx(10.025));
  }
  SECTION("one on the other side ends what was summed") {
    average.slower = {2, 20.5, 2, 10.3, 1};
    CHECK(average.add(9.85, 0.1) == Drift::none);
    CHECK(average.slower.sum == 0);
    CHECK(average.slower.total == 0);
    CHECK(average.slower.far_runs == 0);
    CHECK(average.faster.runs == 1);
  }
  CHECK(average.log_ns.count == 101);
  CHECK(average.weight == 101);
  CHECK(average.widening == 0.02);
}

TEST_CASE("selector drift: the first four runs are not judged, and count alike", "[selector]") {
  RunAverage average;
  for (const double log_ns : {10.0, 20.0, 10.0, 20.0}) CHECK(average.add(log_ns, 0.1) == Drift::none);
  CHECK(average.log_ns.mean == Approx(15));
  CHECK(average.slower.sum + average.faster.sum == 0);
  average = {};
  for (int i = 0; i < 4; ++i) average.add(10, 0.1);
  average.add(20, 0.1);  // judged: at most three deviations of 0.3 / sqrt(5)
  CHECK(average.log_ns.mean == Approx(10 + 0.2 * 3 * 0.1341640786));
  CHECK(average.slower.sum == Approx(3));
}

TEST_CASE("selector drift: the deviation of the mean", "[selector]") {
  RunAverage average = settled();  // of 2 / 0.1 - 1 runs
  CHECK(average.mean_deviation(0.1) == Approx(0.103884932536 / std::sqrt(19.0)).epsilon(1e-8));
  average.weight = 4;
  CHECK(average.mean_deviation(0.1) == Approx(0.103884932536 / 2).epsilon(1e-8));
  average.widening = 0.25;
  CHECK(average.mean_deviation(0.1) == Approx(std::hypot(0.103884932536 / 2, 0.5)).epsilon(1e-8));
  average.weight = 0;
  CHECK(average.mean_deviation(0.1, 0.7) == 0.7);
}

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
