// Unordered completion: what it lets a job overtake, on the executor's own threads and in virtual time.
#include "core/executor/jobs.hpp"
#include "core/executor/virtual_schedule.hpp"

#include <catch2/catch.hpp>

#include <numeric>

using namespace kiln;
using namespace kiln::test;

namespace {

constexpr std::size_t long_copy = 1 << 18;  // in floats; 1 MiB: by its bytes worth a thread of its own
constexpr double us = 1e3;
constexpr double ms = 1e6;

Job job_completing(const std::shared_ptr<Device>& device, std::size_t floats, Completion completion) {
  Job job = add_one(device, std::vector<float>(floats, 1.0f));
  job.submission.completion = completion;
  return job;
}

}  // namespace

TEST_CASE("unordered: a job that fails on its way finishes before those ahead of it", "[executor][unordered]") {
  const auto device = std::make_shared<SyntheticDevice>();
  const auto executor = ring(3);
  device->hold();
  const Fence first = executor->submit(add_one(device, {1}).submission).value();
  device->await_submitted(1);
  device->refuse(2, unsupported("no"));
  const Fence second = executor->submit(job_completing(device, 1, Completion::unordered).submission).value();
  CHECK(executor->wait(second, Deadline::never()).error().code == StatusCode::unsupported);
  CHECK(executor->wait(first, {Clock::now()}).error().code == StatusCode::timeout);
  device->release();
  CHECK(executor->wait(first, Deadline::never()));
}

TEST_CASE("unordered: a short result does not wait for a long one before it, an ordered one does",
          "[executor][unordered]") {
  const auto device = std::make_shared<SyntheticDevice>();
  const auto executor = ring(4);
  device->hold_reads(long_copy * sizeof(float));
  const Job large = job_completing(device, long_copy, Completion::ordered);
  const Job passed = job_completing(device, 4, Completion::ordered);
  const Job quick = job_completing(device, 8, Completion::unordered);
  const Fence first = executor->submit(large.submission).value();
  const Fence second = executor->submit(passed.submission).value();
  const Fence third = executor->submit(quick.submission).value();
  const std::vector<Fence> all{first, second, third};
  CHECK(executor->wait_any(all, Deadline::never()).value() == 2);
  const auto measured = executor->wait(third, {Clock::now()});
  REQUIRE(measured);
  CHECK(values_of(*quick.output) == std::vector<float>(8, 2.0f));
  CHECK(executor->wait(first, {Clock::now()}).error().code == StatusCode::timeout);
  device->await_idle();  // the second has been worked on, and keeps its turn
  CHECK(executor->wait(second, Deadline::after(std::chrono::milliseconds(20))).error().code == StatusCode::timeout);

  // One that comes later overtakes as well, in the slot that came free.
  const Job later = job_completing(device, 8, Completion::unordered);
  REQUIRE(executor->wait(executor->submit(later.submission).value(), Deadline::never()));
  CHECK(values_of(*later.output) == std::vector<float>(8, 2.0f));

  device->hold_reads(SIZE_MAX);
  REQUIRE(executor->wait(second, Deadline::never()));
  REQUIRE(executor->wait(first, {Clock::now()}));  // it was there before the second
  CHECK(values_of(*large.output) == std::vector<float>(long_copy, 2.0f));
  CHECK(values_of(*passed.output) == std::vector<float>(4, 2.0f));
}

TEST_CASE("unordered: a job that overtakes fails, times out and is lost by itself", "[executor][unordered]") {
  const auto device = std::make_shared<SyntheticDevice>();
  const auto executor = ring(4);
  device->hold_reads(long_copy * sizeof(float));
  const Fence first = executor->submit(job_completing(device, long_copy, Completion::ordered).submission).value();
  device->await_held_read();
  SECTION("fails on the device") {
    device->fail(2, internal_error("no"));
    const Fence second = executor->submit(job_completing(device, 1, Completion::unordered).submission).value();
    CHECK(executor->wait(second, Deadline::never()).error().code == StatusCode::internal);
  }
  SECTION("is not finished at its deadline") {
    device->hold();
    Submission late = job_completing(device, 1, Completion::unordered).submission;
    late.deadline = Deadline::after(std::chrono::milliseconds(5));
    const Fence second = executor->submit(late).value();
    CHECK(executor->wait(second, Deadline::never()).error().code == StatusCode::timeout);
    device->release();
    CHECK(executor->wait(second, Deadline::never()));
  }
  SECTION("the device is lost") {
    device->lose();
    const Fence second = executor->submit(job_completing(device, 1, Completion::unordered).submission).value();
    CHECK(executor->wait(second, Deadline::never()).error().code == StatusCode::device_lost);
  }
  CHECK(executor->wait(first, {Clock::now()}).error().code == StatusCode::timeout);
  device->hold_reads(SIZE_MAX);
  CHECK(executor->wait(first, Deadline::never()));  // what the device had done with comes back
}

TEST_CASE("unordered: in virtual time small jobs come back while a large one does", "[executor][unordered]") {
  // Every fourth job brings 1 MiB back, which takes 10 ms; the others 4 KiB: 0.04 ms.
  VirtualWorkload workload;
  workload.model.upload.fixed_ns = 10 * us;
  workload.model.device.fixed_ns = 1 * ms;
  workload.model.readback.byte_ns = 10 * ms / (1 << 20);
  workload.jobs = 4;
  workload.bytes_of = [](std::size_t job) { return job % 4 == 0 ? 1u << 20 : 4096u; };
  const VirtualRun ordered = run_virtually(workload, 4);
  workload.completion_of = [](std::size_t job) { return job % 4 == 0 ? Completion::ordered : Completion::unordered; };
  const VirtualRun unordered = run_virtually(workload, 4);
  CHECK(ordered.failed == 0);
  CHECK(unordered.failed == 0);
  // 0.01 up, 1 on the device, 10 back; then each in its turn, or each when its own millisecond on the device is over.
  CHECK(static_cast<double>(ordered.finished_ns[0]) == Approx(11.01 * ms).epsilon(1e-3));
  CHECK(unordered.finished_ns[0] == ordered.finished_ns[0]);
  for (std::size_t job = 1; job < 4; ++job) {
    CAPTURE(job);
    CHECK(ordered.finished_ns[job] > ordered.finished_ns[0]);
    CHECK(static_cast<double>(unordered.finished_ns[job]) ==
          Approx((1.01 + static_cast<double>(job) + 0.039) * ms).epsilon(1e-2));
  }
}

TEST_CASE("unordered: a stream of small jobs keeps its pace beside large ones", "[executor][unordered]") {
  VirtualWorkload workload;
  workload.model.device.fixed_ns = 1 * ms;
  workload.model.readback.byte_ns = 10 * ms / (1 << 20);
  workload.jobs = 40;
  workload.bytes_of = [](std::size_t job) { return job % 20 == 0 ? 1u << 20 : 4096u; };
  const VirtualRun ordered = run_virtually(workload, 4);
  workload.completion_of = [](std::size_t job) { return job % 20 == 0 ? Completion::ordered : Completion::unordered; };
  const VirtualRun unordered = run_virtually(workload, 4);
  CHECK(unordered.failed == 0);
  const auto sum = [](const VirtualRun& run) {
    return std::accumulate(run.finished_ns.begin(), run.finished_ns.end(), 0.0);
  };
  CHECK(sum(unordered) < 0.8 * sum(ordered));
  CHECK(unordered.ns < ordered.ns);
}
