#include "core/executor/jobs.hpp"

#include <kiln/stop_scope.hpp>

#include <catch2/catch.hpp>

#include <atomic>
#include <future>

using namespace kiln;
using namespace kiln::test;

namespace {

constexpr std::chrono::milliseconds soon{10};

}  // namespace

TEST_CASE("executor: a wait that times out leaves the slot busy, and the result can be had later", "[executor]") {
  const auto device = std::make_shared<SyntheticDevice>();
  const auto executor = ring(1);
  device->hold();
  Job job = add_one(device, {41});
  const Fence fence = executor->submit(job.submission).value();
  for (int i = 0; i < 2; ++i) {
    const auto late = executor->wait(fence, Deadline::after(soon));
    REQUIRE_FALSE(late);
    CHECK(late.error().code == StatusCode::timeout);
  }
  // The one slot is still taken.
  Job next = add_one(device, {1});
  next.submission.deadline = Deadline::after(soon);
  CHECK(executor->submit(next.submission).error().code == StatusCode::timeout);
  CHECK(device->submitted() == 1);

  device->release();
  REQUIRE(executor->wait(fence, Deadline::never()));
  CHECK(values_of(*job.output) == std::vector<float>{42});
  next.submission.deadline = Deadline::never();
  CHECK(executor->wait(executor->submit(next.submission).value(), Deadline::never()));
}

TEST_CASE("executor: passing the job's own deadline answers timeout; a later wait still gets the result",
          "[executor]") {
  const auto device = std::make_shared<SyntheticDevice>();
  const auto executor = ring(1);
  device->hold();
  Job job = add_one(device, {1});
  job.submission.deadline = Deadline::after(soon);
  const Fence fence = executor->submit(job.submission).value();
  const auto late = executor->wait(fence, Deadline::never());
  REQUIRE_FALSE(late);
  CHECK(late.error().code == StatusCode::timeout);
  CHECK_THAT(late.error().message, Catch::Contains("the job's deadline") && Catch::Contains("the work continues"));
  device->release();
  REQUIRE(executor->wait(fence, Deadline::never()));
  CHECK(values_of(*job.output) == std::vector<float>{2});
}

TEST_CASE("executor: a wait with a deadline in the past asks without waiting", "[executor]") {
  const auto device = std::make_shared<SyntheticDevice>();
  const auto executor = ring(2);
  device->hold();
  const Fence first = executor->submit(add_one(device, {1}).submission).value();
  const Fence second = executor->submit(add_one(device, {1}).submission).value();
  CHECK(executor->wait(first, {Clock::now()}).error().code == StatusCode::timeout);
  device->release();
  REQUIRE(executor->wait(second, Deadline::never()));
  CHECK(executor->wait(first, {Clock::now()}));  // finished before the second
}

TEST_CASE("executor: a job whose deadline has passed and that is finished answers its result", "[executor]") {
  const auto device = std::make_shared<SyntheticDevice>();
  const auto executor = ring(2);
  Job job = add_one(device, {1});
  job.submission.deadline = {Clock::now()};
  const Fence fence = executor->submit(job.submission).value();
  REQUIRE(executor->wait(executor->submit(add_one(device, {1}).submission).value(), Deadline::never()));
  CHECK(executor->wait(fence, Deadline::never()));
  CHECK(values_of(*job.output) == std::vector<float>{2});
}

TEST_CASE("executor: a thread that waits for a slot is stopped by its flag", "[executor]") {
  const bool replayed = GENERATE(false, true);
  CAPTURE(replayed);
  const auto device = std::make_shared<SyntheticDevice>();
  const auto executor = ring(1);
  device->hold();
  const Fence first = executor->submit(add_one(device, {1}).submission).value();
  Job next = add_one(device, {2});
  const auto recorded = executor->record({next.submission}).value();
  std::atomic<bool> stop{false};
  auto waiting = std::async(std::launch::async, [&] {
    const StopScope scope(&stop);
    return replayed ? executor->replay(recorded, Deadline::never()) : executor->submit(next.submission);
  });
  CHECK(waiting.wait_for(soon) == std::future_status::timeout);
  stop = true;
  const auto stopped = waiting.get();
  REQUIRE_FALSE(stopped);
  CHECK(stopped.error().code == StatusCode::cancelled);
  CHECK_FALSE(recorded->in_flight());
  device->release();
  REQUIRE(executor->wait(first, Deadline::never()));
  const StopScope scope(&stop);  // of no effect where a slot is free
  CHECK(executor->wait(executor->submit(next.submission).value(), Deadline::never()));
}
