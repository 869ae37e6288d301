#include "core/executor/virtual_schedule.hpp"
#include "support/test_length.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <random>

using namespace kiln;
using namespace kiln::test;

namespace {

support::SimModel stages(double upload_ns, double device_ns, double readback_ns) {
  support::SimModel model;
  model.upload.fixed_ns = upload_ns;
  model.device.fixed_ns = device_ns;
  model.readback.fixed_ns = readback_ns;
  return model;
}

double ratio(const VirtualRun& serial, const VirtualRun& pipelined) {
  return static_cast<double>(serial.ns) / static_cast<double>(pipelined.ns);
}

}  // namespace

TEST_CASE("overlap: three equal stages, depth 2 doubles and depth 3 triples the serial rate", "[executor][overlap]") {
  VirtualWorkload workload;
  workload.model = stages(1e6, 1e6, 1e6);
  workload.jobs = 100;
  const VirtualRun serial = run_virtually(workload, 1);
  CHECK(serial.failed == 0);
  CHECK(serial.ns == 300'000'000);  // nothing is lost and nothing overlaps
  const VirtualRun two = run_virtually(workload, 2);
  CHECK(two.failed == 0);
  CHECK(ratio(serial, two) >= 1.9);
  const VirtualRun three = run_virtually(workload, 3);
  CHECK(three.failed == 0);
  CHECK(ratio(serial, three) >= 2.8);
  CHECK(three.ns == 102'000'000);  // fill, drain, and a job a stage
}

TEST_CASE("overlap: a run is never shorter than its slowest stage, nor longer than all of them",
          "[executor][overlap]") {
  VirtualWorkload workload;
  workload.model = stages(2e5, 9e5, 4e5);
  workload.jobs = 50;
  for (std::uint32_t depth = 1; depth <= 16; ++depth) {
    const VirtualRun run = run_virtually(workload, depth);
    INFO("depth " << depth);
    CHECK(run.failed == 0);
    CHECK(run.ns >= 50 * 900'000);
    CHECK(run.ns <= 50 * 1'500'000);
  }
}

TEST_CASE("overlap: the adaptive depth is within 5 % of the best fixed depth on 50 mixes of stages",
          "[executor][overlap][unsanitized]") {
  const int mixes = is_sanitized ? 10 : 50;
  std::mt19937_64 random(20261122);
  const auto uniform = [&](double least, double most) {
    return std::uniform_real_distribution<double>(least, most)(random);
  };
  double worst = 0;
  double slots = 0;
  for (int mix = 0; mix < mixes; ++mix) {
    VirtualWorkload workload;
    workload.jobs = 200;
    workload.bytes = 256;
    for (support::StageCost* stage : {&workload.model.upload, &workload.model.device, &workload.model.readback}) {
      stage->fixed_ns = std::exp(uniform(std::log(1e4), std::log(2e6)));
      stage->byte_ns = uniform(0, 400);
    }
    workload.model.noise = mix % 3 == 0 ? 0.0 : uniform(0.02, 0.35);
    workload.model.seed = static_cast<std::uint64_t>(mix) + 1;
    if (mix % 5 == 4) workload.bytes_of = [](std::size_t i) { return i % 7 == 0 ? 4096u : 256u; };
    std::uint64_t best = UINT64_MAX;
    for (const std::uint32_t depth : {1u, 2u, 3u, 4u, 6u, 8u, 12u, 16u}) {
      best = std::min(best, run_virtually(workload, depth).ns);
    }
    const VirtualRun adaptive = run_virtually(workload, 16, true);
    INFO("mix " << mix << ", depth " << adaptive.usual_depth << " on average");
    CHECK(adaptive.failed == 0);
    const double loss = static_cast<double>(adaptive.ns) / static_cast<double>(best) - 1;
    CHECK(loss <= 0.05);
    worst = std::max(worst, loss);
    slots += adaptive.usual_depth / mixes;
  }
  CHECK(slots < 12);  // it does not simply take all there are
  WARN("largest loss " << worst * 100 << " %, " << slots << " slots on average");
}

TEST_CASE("overlap: with room for two slots' buffers an adaptive ring does not run out of memory",
          "[executor][overlap]") {
  VirtualWorkload workload;
  workload.model = stages(1e4, 1e6, 1e4);
  workload.model.script.memory_bytes = 6 * 4096;
  workload.jobs = 40;
  const VirtualRun deep = run_virtually(workload, 16);
  CHECK(deep.failed > 0);  // a fixed depth of 16 does
  const VirtualRun adaptive = run_virtually(workload, 16, true);
  CHECK(adaptive.failed == 0);
}
