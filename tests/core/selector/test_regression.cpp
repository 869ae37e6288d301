// The regression of run times: predictions worked out apart, by Cramer's rule over exact fractions.
#include "selector/statistics.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <vector>

using namespace kiln::selector;

namespace {

struct Timed {
  double flops, bytes, ns;
};

// About bytes / 11 + flops / 2240 nanoseconds, each off by some per cent.
const std::vector<Timed> six{{1e8, 4e6, 310e3},   {2e8, 1e6, 150e3},  {4e8, 2e6, 330e3},
                             {8e8, 16e6, 1500e3}, {16e8, 3e6, 900e3}, {5e8, 9e6, 800e3}};

std::vector<RunPoint> points_of(const std::vector<Timed>& runs, std::size_t of_family) {
  std::vector<RunPoint> points;
  for (const Timed& run : runs) points.push_back({run.flops, run.bytes, std::log(run.ns), points.size() < of_family});
  return points;
}

void check(const std::vector<RunPoint>& points, double flops, double bytes, double ns, double deviation) {
  const auto found = predict(points, flops, bytes);
  REQUIRE(found);
  CHECK(std::exp(found->log_ns) == Approx(ns).epsilon(1e-9));
  CHECK(found->log_deviation == Approx(deviation).epsilon(1e-9));
  CHECK(found->shapes == points.size());
}

}  // namespace

TEST_CASE("selector regression: FLOPs and bytes, corrected by the nearest shapes", "[selector]") {
  check(points_of(six, 6), 3e8, 2e6, 271178.2570314188, 0.2536822722075882);
  check(points_of(six, 6), 64e8, 40e6, 5521417.3385937875, 0.28280681609962105);  // two octaves beyond the largest
}

TEST_CASE("selector regression: shapes of another family count less, and they alone are not certain", "[selector]") {
  check(points_of(six, 3), 3e8, 2e6, 271209.41025645455, 0.2536822722075882);
  check(points_of(six, 0), 3e8, 2e6, 267272.8169690641, 0.7445499951194713);
}

TEST_CASE("selector regression: shapes without bytes are fitted by a start and a rate", "[selector]") {
  std::vector<Timed> runs = six;
  for (Timed& run : runs) run.bytes = 0;
  check(points_of(runs, 6), 3e8, 0, 296147.6532293974, 0.7514716203511642);
}

TEST_CASE("selector regression: a start, a rate and bytes together", "[selector]") {
  check(points_of({{1e6, 1e4, 50e3}, {2e6, 2e4, 52e3}, {4e6, 8e4, 57e3}, {64e6, 1e5, 90e3}}, 4), 1e7, 5e4,
        57994.200817442696, 0.3802178241642493);
}

TEST_CASE("selector regression: a point that is a thousand times off counts as twenty times", "[selector]") {
  std::vector<Timed> runs = six;
  runs.push_back({3e8, 2e6, 200e6});
  check(points_of(runs, 7), 3e8, 2e6, 1663798.9795422666, 1.0282055950028586);
}

TEST_CASE("selector regression: two points have a rate, three a rate and bytes", "[selector]") {
  check(points_of({six[1], six[2]}, 2), 3e8, 2e6, 238036.37034483574, 0.35991945652766033);
  check(points_of({six[1], six[2], six[3]}, 3), 3e8, 2e6, 274846.6872877453, 1.3797222953006643);
}
