// The number of slots, and the averages of times: from values worked out by hand.
#include "core/executor/jobs.hpp"

#include "executor/ring.hpp"

#include <catch2/catch.hpp>

#include <array>

using namespace kiln;
using namespace kiln::test;
using executor::DepthController;
using executor::RunAverage;
using executor::UsualCopy;

namespace {

using Stages = std::array<double, 3>;  // upload, device, readback

std::uint32_t depth_after(std::uint32_t most, std::initializer_list<Stages> jobs) {
  DepthController controller(most);
  for (const Stages& job : jobs) controller.add(job);
  return controller.depth();
}

std::uint32_t depth_of_steady(const Stages& job) { return depth_after(16, {job, job, job, job}); }

}  // namespace

TEST_CASE("executor: the depth of steady jobs is the sum of their stages through the slowest", "[executor][depth]") {
  CHECK(depth_of_steady({1, 1, 1}) == 3);
  CHECK(depth_of_steady({3, 1, 1}) == 2);  // 5 / 3
  CHECK(depth_of_steady({1, 3, 1}) == 2);
  CHECK(depth_of_steady({1, 1, 3}) == 2);
  CHECK(depth_of_steady({2, 2, 1}) == 3);  // 5 / 2
  CHECK(depth_of_steady({2, 1, 1}) == 2);
  CHECK(depth_of_steady({7, 0, 0}) == 1);
  CHECK(depth_of_steady({0, 0, 0}) == 3);  // nothing is known
}

TEST_CASE("executor: the depth is three for the first jobs, and never above the most", "[executor][depth]") {
  CHECK(depth_after(16, {}) == 3);
  CHECK(depth_after(16, {{7, 0, 0}, {7, 0, 0}, {7, 0, 0}}) == 3);
  CHECK(depth_after(16, {{7, 0, 0}, {7, 0, 0}, {7, 0, 0}, {7, 0, 0}}) == 1);
  CHECK(depth_after(2, {{1, 1, 1}}) == 2);
  CHECK(depth_after(2, {{1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}}) == 2);
}

TEST_CASE("executor: times that vary add slots", "[executor][depth]") {
  // Mean 2, deviation 1: one slot, and 14 · 1 / 2 more. In each of the stages.
  CHECK(depth_after(16, {{1, 0, 0}, {3, 0, 0}, {1, 0, 0}, {3, 0, 0}}) == 8);
  CHECK(depth_after(16, {{0, 1, 0}, {0, 3, 0}, {0, 1, 0}, {0, 3, 0}}) == 8);
  CHECK(depth_after(16, {{0, 0, 1}, {0, 0, 3}, {0, 0, 1}, {0, 0, 3}}) == 8);
  CHECK(depth_after(5, {{1, 0, 0}, {3, 0, 0}, {1, 0, 0}, {3, 0, 0}}) == 5);
}

TEST_CASE("executor: the average time of a job begins where the job before it ended", "[executor][depth]") {
  RunAverage average;
  CHECK(average.ns() == 0);
  average.add(0, 100, RunAverage::Outcome::finished);
  CHECK(average.ns() == 100);
  average.add(50, 200, RunAverage::Outcome::finished);  // 100 after the one before
  CHECK(average.ns() == 100);
  average.add(1000, 1600, RunAverage::Outcome::finished);  // 600: a fifth of the difference counts
  CHECK(average.ns() == 200);
  average.add(1600, 5000, RunAverage::Outcome::failed);
  CHECK(average.ns() == 200);
  average.add(2000, 5200, RunAverage::Outcome::finished);  // 200 after the failed one
  CHECK(average.ns() == 200);
  average.add(0, 5000, RunAverage::Outcome::finished);  // over before the last one: no time of its own
  CHECK(average.ns() == 160);
}

TEST_CASE("executor: the expected time of a copy is in proportion to those before", "[executor][depth]") {
  UsualCopy copy;
  CHECK(copy.ns(4000) == 1000);  // 4 GB/s until one was measured
  copy.learn(1000, 500);
  CHECK(copy.ns(2000) == 1000);
  CHECK(copy.ns(0) == 0);
  copy.learn(3000, 500);  // usual: 1400 bytes in 500 ns
  CHECK(copy.ns(2800) == 1000);
}

TEST_CASE("executor: the times of a job are without the upload of NaN to its outputs", "[executor][recording]") {
  constexpr std::uint64_t write_ns = 1'000'000, few_looks_at_the_clock = 1000;
  const bool is_recorded = GENERATE(false, true);
  const bool uploads_outputs = GENERATE(false, true);
  CAPTURE(is_recorded, uploads_outputs);
  const auto device = std::make_shared<SyntheticDevice>();
  device->untimed = true;
  const auto executor = ring(2);
  Job job = add_one(device, {1, 2});
  Job other = add_one(device, {5, 6});
  for (Job* const one : {&job, &other}) {
    one->submission.upload_outputs = uploads_outputs;
    one->submission.programs = {program_of([](const Memories& m) { m[1][0] = m[0][0]; })};
    one->output->as<float>()[1] = -99;
  }
  device->write_ns = write_ns;
  const auto recorded = executor->record({job.submission, other.submission});
  REQUIRE(recorded);
  const auto fence = is_recorded ? executor->replay(*recorded, Deadline::never()) : executor->submit(job.submission);
  REQUIRE(fence);
  const auto measured = executor->wait(*fence, Deadline::never());
  REQUIRE(measured);
  const std::uint64_t inputs = is_recorded ? 2 : 1;
  CHECK(measured->upload_ns >= inputs * write_ns);
  CHECK(measured->upload_ns < inputs * write_ns + few_looks_at_the_clock);
  CHECK(measured->wall_ns >= inputs * write_ns);
  CHECK(measured->wall_ns < inputs * write_ns + few_looks_at_the_clock);
  CHECK((values_of(*job.output) == std::vector<float>{1, -99}) == uploads_outputs);  // the second value is not written
}
