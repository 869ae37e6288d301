#include "core/executor/jobs.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <future>
#include <thread>

using namespace kiln;
using namespace kiln::test;

TEST_CASE("executor: jobs run and finish in the order of their fences", "[executor]") {
  const auto device = std::make_shared<SyntheticDevice>();
  const auto executor = ring(3);
  auto order = std::make_shared<std::vector<int>>();
  std::vector<Fence> fences;
  for (int i = 0; i < 20; ++i) {
    Job job = add_one(device, {1});
    job.submission.programs = {program_of([order, i](const Memories&) { order->push_back(i); })};
    const auto fence = executor->submit(std::move(job.submission));
    REQUIRE(fence);
    fences.push_back(*fence);
  }
  // Waited for from the back: the order of waiting is nobody's business.
  for (auto fence = fences.rbegin(); fence != fences.rend(); ++fence)
    REQUIRE(executor->wait(*fence, Deadline::never()));
  for (int i = 0; i < 20; ++i) {
    CHECK((*order)[static_cast<std::size_t>(i)] == i);
    CHECK(fences[static_cast<std::size_t>(i)].value == static_cast<std::uint64_t>(i + 1));
    CHECK(fences[static_cast<std::size_t>(i)].queue == fences[0].queue);
  }
}

TEST_CASE("executor: as many jobs as slots reach the device, and never one more", "[executor]") {
  const auto in_flight = GENERATE(range(1u, 17u));
  CAPTURE(in_flight);
  const auto device = std::make_shared<SyntheticDevice>();
  const auto executor = ring(in_flight);
  device->hold();
  std::vector<Fence> fences;
  std::vector<Job> jobs;
  for (std::uint32_t i = 0; i < in_flight; ++i) {
    jobs.push_back(add_one(device, {static_cast<float>(i)}));
    fences.push_back(executor->submit(jobs.back().submission).value());
  }
  device->await_submitted(in_flight);

  Job late = add_one(device, {0});
  late.submission.deadline = Deadline::after(std::chrono::milliseconds(5));
  const auto refused = executor->submit(late.submission);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == StatusCode::timeout);
  CHECK_THAT(refused.error().message, Catch::Contains("synthetic:0") && Catch::Contains("no slot became free"));
  CHECK(device->submitted() == in_flight);

  device->release();
  for (std::uint32_t i = 0; i < in_flight; ++i) {
    REQUIRE(executor->wait(fences[i], Deadline::never()));
    CHECK(values_of(*jobs[i].output) == std::vector<float>{static_cast<float>(i) + 1});
  }
  CHECK(device->most_in_device() == in_flight);
}

TEST_CASE("executor: a submit that found no slot goes on when one comes free", "[executor]") {
  const auto device = std::make_shared<SyntheticDevice>();
  const auto executor = ring(2);
  device->hold();
  const Fence first = executor->submit(add_one(device, {1}).submission).value();
  const Fence second = executor->submit(add_one(device, {2}).submission).value();
  device->await_submitted(2);

  Job third = add_one(device, {3});
  auto blocked = std::async(std::launch::async, [&] { return executor->submit(third.submission); });
  CHECK(device->submitted() == 2);
  device->allow(1);
  const auto fence = blocked.get();
  REQUIRE(fence);
  REQUIRE(executor->wait(first, Deadline::never()));

  device->release();
  REQUIRE(executor->wait(second, Deadline::never()));
  const auto measured = executor->wait(*fence, Deadline::never());
  REQUIRE(measured);
  CHECK(values_of(*third.output) == std::vector<float>{4});
  CHECK(measured->queue_ns > 0);
}

TEST_CASE("executor: a job that arrives while another runs reaches the device", "[executor]") {
  const auto device = std::make_shared<SyntheticDevice>();
  const auto executor = ring(2);
  device->hold();
  const Fence first = executor->submit(add_one(device, {1}).submission).value();
  device->await_submitted(1);
  const Fence second = executor->submit(add_one(device, {2}).submission).value();
  device->await_submitted(2);  // the submit thread did not sit in the wait for the first
  device->release();
  CHECK(executor->wait(first, Deadline::never()));
  CHECK(executor->wait(second, Deadline::never()));
}

TEST_CASE("executor: devices have queues of their own", "[executor]") {
  const auto held = std::make_shared<SyntheticDevice>(Memory::plain, "held");
  const auto free = std::make_shared<SyntheticDevice>(Memory::mapped, "free");
  const auto executor = ring(1);
  held->hold();
  const Fence slow = executor->submit(add_one(held, {1}).submission).value();
  Job quick = add_one(free, {1});
  const Fence fast = executor->submit(quick.submission).value();
  CHECK(slow.queue != fast.queue);
  CHECK(slow.value == 1);
  CHECK(fast.value == 1);
  REQUIRE(executor->wait(fast, Deadline::never()));
  CHECK(values_of(*quick.output) == std::vector<float>{2});
  held->release();
  CHECK(executor->wait(slow, Deadline::never()));
}

TEST_CASE("executor: the backlog is the jobs in flight times what recent ones took", "[executor]") {
  const auto device = std::make_shared<SyntheticDevice>();
  const auto executor = ring(4);
  CHECK(executor->backlog_ns(*device) == 0);
  REQUIRE(executor->wait(executor->submit(add_one(device, {1}).submission).value(), Deadline::never()));
  CHECK(executor->backlog_ns(*device) == 0);  // nothing in flight
  device->hold();
  const Fence one = executor->submit(add_one(device, {1}).submission).value();
  const std::uint64_t of_one = executor->backlog_ns(*device);
  CHECK(of_one > 0);
  const Fence two = executor->submit(add_one(device, {1}).submission).value();
  CHECK(executor->backlog_ns(*device) == 2 * of_one);
  device->release();
  CHECK(executor->wait(one, Deadline::never()));
  CHECK(executor->wait(two, Deadline::never()));
  CHECK(executor->backlog_ns(*device) == 0);
}

TEST_CASE("executor: a job that was cancelled, failed or refused is no part of the backlog", "[executor]") {
  const auto device = std::make_shared<SyntheticDevice>();
  const auto executor = ring(2);
  REQUIRE(executor->wait(executor->submit(add_one(device, {1}).submission).value(), Deadline::never()));
  device->fail(2, internal_error("faulted"));
  CHECK_FALSE(executor->wait(executor->submit(add_one(device, {1}).submission).value(), Deadline::never()));
  CHECK(executor->backlog_ns(*device) == 0);
  device->refuse(3, internal_error("refused"));
  CHECK_FALSE(executor->wait(executor->submit(add_one(device, {1}).submission).value(), Deadline::never()));
  CHECK(executor->backlog_ns(*device) == 0);
  device->hold();
  // A packing holds up the upload lane, so that the job behind it is still on its way.
  const auto packings = std::make_shared<std::atomic<int>>(0);
  const std::uint64_t before = device->submitted();
  const Fence first = executor->submit(weigh_packed(device, {1, 1}, constant_of({2, 3}), packings).submission).value();
  device->await_submitted(before + 1);
  const std::uint64_t of_one = executor->backlog_ns(*device);
  CHECK(of_one > 0);
  for (int i = 0; i < 3; ++i) {
    const Fence behind = executor->submit(add_one(device, {1}).submission).value();
    CHECK(executor->backlog_ns(*device) == 2 * of_one);
    REQUIRE(executor->cancel(behind).ok());
    CHECK(executor->backlog_ns(*device) == of_one);
    CHECK(executor->wait(behind, Deadline::never()).error().code == StatusCode::cancelled);
    CHECK(executor->backlog_ns(*device) == of_one);
  }
  device->release();
  CHECK(executor->wait(first, Deadline::never()));
  CHECK(executor->backlog_ns(*device) == 0);
}

TEST_CASE("executor: whoever has a result finds its slot free", "[executor]") {
  const auto device = std::make_shared<SyntheticDevice>(GENERATE(Memory::plain, Memory::wrapped));
  const auto executor = ring(1);
  for (int i = 0; i < 300; ++i) {
    Job job = add_one(device, {static_cast<float>(i)});
    job.submission.deadline = Deadline{Clock::now()};  // a slot that is not free yet would be waited for
    const auto fence = executor->submit(job.submission);
    INFO("job " << i << ": " << (fence ? std::string() : fence.error().text()));
    REQUIRE(fence);
    auto measured = executor->wait(*fence, Deadline::never());
    if (!measured) measured = executor->wait(*fence, Deadline::after(std::chrono::seconds(20)));  // beyond the job's
    REQUIRE(measured.has_value());

    REQUIRE(values_of(*job.output) == std::vector<float>{static_cast<float>(i) + 1});
  }
}

TEST_CASE("executor: a wait does not wait for another thread's wait on the same device", "[executor]") {
  const auto device = std::make_shared<SyntheticDevice>();
  const auto executor = ring(2);
  device->hold();
  const Job first = add_one(device, {1}), second = add_one(device, {2});
  const Fence one = executor->submit(first.submission).value();
  const Fence two = executor->submit(second.submission).value();
  std::atomic<bool> one_has_begun{false};
  std::future<bool> waiting = std::async(std::launch::async, [&] {
    one_has_begun = true;
    return executor->wait(one, Deadline::never()).has_value();
  });
  while (!one_has_begun) std::this_thread::yield();
  // The other thread waits, or is about to: this one answers by its own deadline all the same.
  for (int i = 0; i < 20; ++i) {
    const auto late = executor->wait(two, Deadline::after(std::chrono::milliseconds(2)));
    REQUIRE_FALSE(late);
    CHECK(late.error().code == StatusCode::timeout);
  }
  CHECK(waiting.wait_for(std::chrono::seconds(0)) == std::future_status::timeout);
  device->release();
  CHECK(executor->wait(two, Deadline::never()));
  CHECK(waiting.get());
  CHECK(values_of(*first.output) == std::vector<float>{2});
  CHECK(values_of(*second.output) == std::vector<float>{3});
}
