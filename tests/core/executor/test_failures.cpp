#include "core/executor/jobs.hpp"
#include "support/in_child.hpp"

#include <sys/resource.h>

#include <catch2/catch.hpp>

using namespace kiln;
using namespace kiln::test;

TEST_CASE("executor: a device's error is the job's, and the next job runs", "[executor]") {
  const auto device = std::make_shared<SyntheticDevice>();
  const auto executor = ring(2);
  device->fail(1, internal_error("page fault"));
  device->refuse(2, unsupported("grid too large"));
  const Fence faulted = executor->submit(add_one(device, {1}).submission).value();
  const auto fault = executor->wait(faulted, Deadline::never());
  REQUIRE_FALSE(fault);
  CHECK(fault.error().code == StatusCode::internal);
  CHECK_THAT(fault.error().message, Catch::Contains("synthetic:0") && Catch::Contains("page fault"));
  CHECK(executor->wait(faulted, Deadline::never()).error().code ==
        StatusCode::not_found);  // an error is taken once too

  const auto refused = executor->wait(executor->submit(add_one(device, {1}).submission).value(), Deadline::never());
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == StatusCode::unsupported);

  Job good = add_one(device, {1});
  REQUIRE(executor->wait(executor->submit(good.submission).value(), Deadline::never()));
  CHECK(values_of(*good.output) == std::vector<float>{2});
}

TEST_CASE("executor: where no thread is to be had submit() and replay() say so, and serve once there is one",
          "[executor]") {
#if defined(__SANITIZE_THREAD__)
  WARN("skipped: the thread sanitizer starts no thread in a child of a process that had several");
  return;
#endif
  const ChildEnd end = in_unprivileged_child([]() -> std::string {
    const auto device = std::make_shared<SyntheticDevice>();
    const auto executor = ring(2);
    Job job = add_one(device, {1});
    const auto recorded = executor->record({job.submission});
    if (!recorded) return recorded.error().text();
    rlimit threads{};
    if (getrlimit(RLIMIT_NPROC, &threads) != 0) return "the limit cannot be read";
    const rlimit none{0, threads.rlim_max};
    if (setrlimit(RLIMIT_NPROC, &none) != 0) return "the limit cannot be set";
    for (const bool again : {false, true}) {
      const auto fence = again ? executor->replay(*recorded, Deadline::never()) : executor->submit(job.submission);
      if (fence) return "it was taken without a thread";
      if (fence.error().code != StatusCode::unavailable) return fence.error().text();
    }
    if (setrlimit(RLIMIT_NPROC, &threads) != 0) return "the limit cannot be lifted";
    const auto fence = executor->replay(*recorded, Deadline::never());
    if (!fence) return fence.error().text();
    if (const auto done = executor->wait(*fence, Deadline::never()); !done) return done.error().text();
    return values_of(*job.output) == std::vector<float>{2} ? "" : "wrong values";
  });
  CHECK(end.said == "");
  CHECK(end.signal == 0);
}

TEST_CASE("executor: a job that failed early does not overtake those before it", "[executor]") {
  const auto device = std::make_shared<SyntheticDevice>();
  const auto executor = ring(2);
  device->hold();
  device->refuse(2, unsupported("no"));
  const Fence first = executor->submit(add_one(device, {1}).submission).value();
  device->await_submitted(1);
  const Fence second = executor->submit(add_one(device, {1}).submission).value();
  CHECK(executor->wait(second, Deadline::after(std::chrono::milliseconds(10))).error().code == StatusCode::timeout);
  device->release();
  CHECK(executor->wait(second, Deadline::never()).error().code == StatusCode::unsupported);
  CHECK(executor->wait(first, {Clock::now()}));
}

TEST_CASE("executor: short device memory fails the job with the tensor's name", "[executor]") {
  const auto device = std::make_shared<SyntheticDevice>();
  const auto executor = ring(2);
  device->refuse_buffers(unavailable("out of memory"));
  const auto failed = executor->wait(executor->submit(add_one(device, {1}).submission).value(), Deadline::never());
  REQUIRE_FALSE(failed);
  CHECK(failed.error().code == StatusCode::unavailable);
  CHECK_THAT(failed.error().message, Catch::Contains("tensor x") && Catch::Contains("out of memory"));
  device->refuse_buffers(std::nullopt);
  CHECK(executor->wait(executor->submit(add_one(device, {1}).submission).value(), Deadline::never()));
}

TEST_CASE("executor: a lost device fails all that is in flight, and whoever comes after", "[executor]") {
  const auto device = std::make_shared<SyntheticDevice>();
  const auto executor = ring(3);
  device->hold();
  std::vector<Fence> fences;
  for (int i = 0; i < 3; ++i) fences.push_back(executor->submit(add_one(device, {1}).submission).value());
  device->await_submitted(3);
  device->lose();
  for (const Fence fence : fences) {
    const auto lost = executor->wait(fence, Deadline::never());
    REQUIRE_FALSE(lost);
    CHECK(lost.error().code == StatusCode::device_lost);
    CHECK_THAT(lost.error().message, Catch::Contains("synthetic:0"));
  }
  const auto refused = executor->submit(add_one(device, {1}).submission);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == StatusCode::device_lost);

  // The same id, opened again, is another device with a queue of its own.
  const auto reopened = std::make_shared<SyntheticDevice>();
  Job job = add_one(reopened, {1});
  const Fence fence = executor->submit(job.submission).value();
  CHECK(fence.queue != fences[0].queue);
  REQUIRE(executor->wait(fence, Deadline::never()));
  CHECK(values_of(*job.output) == std::vector<float>{2});
}

TEST_CASE("executor: a lost device wakes who waits for a slot", "[executor]") {
  const auto device = std::make_shared<SyntheticDevice>();
  const auto executor = ring(1);
  device->hold();
  const Fence fence = executor->submit(add_one(device, {1}).submission).value();
  device->await_submitted(1);
  std::thread loser([&] { device->lose(); });
  const auto blocked = executor->submit(add_one(device, {1}).submission);  // before or after the loss: one answer
  loser.join();
  CHECK(executor->wait(fence, Deadline::never()).error().code == StatusCode::device_lost);
  REQUIRE_FALSE(blocked);
  CHECK(blocked.error().code == StatusCode::device_lost);
}

TEST_CASE("executor: a lost device is let go, with all its buffers", "[executor]") {
  auto device = std::make_shared<SyntheticDevice>();
  const std::weak_ptr<SyntheticDevice> watched = device;
  const auto executor = ring(2);
  const auto weights = constant_of({2, 3});
  REQUIRE(executor->wait(executor->submit(weigh(device, {1, 1}, weights).submission).value(), Deadline::never()));
  CHECK(device->buffers_alive(BufferUsage::constant) == 1);
  device->lose();
  const Fence fence = executor->submit(weigh(device, {1, 1}, weights).submission).value();
  CHECK(executor->wait(fence, Deadline::never()).error().code == StatusCode::device_lost);
  device->await_buffers(BufferUsage::constant, 0);
  device->await_buffers(BufferUsage::upload, 0);
  device->await_buffers(BufferUsage::readback, 0);
}
