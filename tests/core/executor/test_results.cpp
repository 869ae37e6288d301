#include "core/executor/jobs.hpp"

#include "executor/timeline.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <future>
#include <thread>

using namespace kiln;
using namespace kiln::test;

namespace {

// What the plan of two passes computes, written down apart from it.
std::vector<float> expected(const std::vector<float>& input) {
  std::vector<float> values;
  for (const float value : input) values.push_back((value + 1) * 2);
  return values;
}

std::vector<float> input_of(int job) {
  std::vector<float> values;
  for (int i = 0; i < 5 + job % 4; ++i) values.push_back(static_cast<float>(job * 31 + i) * 0.37f);
  return values;
}

}  // namespace

TEST_CASE("executor: every result is there, bit for bit, however it is waited for", "[executor]") {
  const auto memory = GENERATE(Memory::plain, Memory::mapped, Memory::wrapped);
  const auto device = std::make_shared<SyntheticDevice>(memory);
  const auto executor = ring(3);
  std::vector<Job> jobs;
  std::vector<Fence> fences;
  for (int i = 0; i < 30; ++i) {
    jobs.push_back(two_passes(device, input_of(i)));
    fences.push_back(executor->submit(jobs.back().submission).value());
  }
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const auto measured = executor->wait(fences[i], Deadline::never());
    REQUIRE(measured);
    CHECK(values_of(*jobs[i].output) == expected(input_of(static_cast<int>(i))));
    CHECK(measured->variant == "two_passes");
    CHECK(measured->device_ns > 1000);  // the device's own figure, handed through
    CHECK(measured->wall_ns >= measured->queue_ns + measured->upload_ns + measured->readback_ns);
    CHECK_FALSE(measured->prepared);
  }
}

TEST_CASE("executor: an inout tensor goes there and back", "[executor]") {
  const auto memory = GENERATE(Memory::plain, Memory::mapped, Memory::wrapped);
  const auto device = std::make_shared<SyntheticDevice>(memory);
  const auto executor = ring(2);
  const Job job = in_place(device, {1, 2, 3});
  for (int run = 0; run < 3; ++run) {
    REQUIRE(executor->wait(executor->submit(job.submission).value(), Deadline::never()));
  }
  CHECK(values_of(*job.output) == std::vector<float>{4, 5, 6});
}

TEST_CASE("executor: a thousand jobs of eight threads lose nothing", "[executor]") {
  const auto memory = GENERATE(Memory::plain, Memory::wrapped);
  const auto in_flight = GENERATE(1u, 3u, 16u);
  const auto device = std::make_shared<SyntheticDevice>(memory);
  const auto executor = ring(in_flight);
  constexpr int threads = 8, jobs_each = 125, window = 5;
  std::atomic<int> right{0}, wrong{0};
  std::vector<std::thread> callers;
  for (int t = 0; t < threads; ++t) {
    callers.emplace_back([&, t] {
      std::deque<std::pair<int, std::pair<Fence, Job>>> open;
      const auto take = [&] {
        auto& [number, held] = open.front();
        const auto measured = executor->wait(held.first, Deadline::never());
        const bool good = measured && values_of(*held.second.output) == expected(input_of(number));
        ++(good ? right : wrong);
        open.pop_front();
      };
      for (int i = 0; i < jobs_each; ++i) {
        const int number = t * jobs_each + i;
        Job job = two_passes(device, input_of(number));
        const auto fence = executor->submit(job.submission);
        if (!fence) {
          ++wrong;
          continue;
        }
        open.push_back({number, {*fence, std::move(job)}});
        if (open.size() == window) take();
      }
      while (!open.empty()) take();
    });
  }
  for (std::thread& caller : callers) caller.join();
  CHECK(right == threads * jobs_each);
  CHECK(wrong == 0);
  CHECK(device->submitted() <= threads * jobs_each);  // small ones that wait together share a submission
  CHECK(device->most_in_device() <= in_flight);
}

TEST_CASE("executor: a result is taken once", "[executor]") {
  const auto device = std::make_shared<SyntheticDevice>();
  const auto executor = ring(2);
  const Fence fence = executor->submit(add_one(device, {1}).submission).value();
  REQUIRE(executor->wait(fence, Deadline::never()));
  const auto again = executor->wait(fence, Deadline::never());
  REQUIRE_FALSE(again);
  CHECK(again.error().code == StatusCode::not_found);
  CHECK_THAT(again.error().message, Catch::Contains("already taken"));
}

TEST_CASE("executor: a fence is pending, then finished, and unknown after its result is taken", "[executor]") {
  using executor::Timeline;
  Timeline timeline("the queue");
  CHECK(timeline.state(0) == Timeline::State::gone);
  CHECK(timeline.state(1) == Timeline::State::gone);
  CHECK_THAT(timeline.gone(1).message, Catch::Contains("fence 1 of the queue was never submitted"));
  for (const std::uint64_t value : {1u, 2u, 3u}) {
    CAPTURE(value);
    REQUIRE(timeline.open(Deadline::never()) == value);
    CHECK(timeline.state(value) == Timeline::State::pending);
    CHECK(timeline.state(value + 1) == Timeline::State::gone);
    CHECK(timeline.wait(value, {Clock::now()}, {}).error().code == StatusCode::timeout);
    Measurement measurement;
    measurement.device_ns = 10 * value;
    timeline.finish(value, measurement);
    CHECK(timeline.state(value) == Timeline::State::finished);
    const auto taken = timeline.wait(value, {Clock::now()}, {});
    REQUIRE(taken);
    CHECK(taken->device_ns == 10 * value);
    CHECK(timeline.state(value) == Timeline::State::gone);
    CHECK_THAT(timeline.gone(value).message, Catch::Contains("the result was already taken"));
  }
}

TEST_CASE("executor: a fence that nobody got is not found", "[executor]") {
  const auto device = std::make_shared<SyntheticDevice>();
  const auto executor = ring(2);
  CHECK(executor->wait({}, Deadline::never()).error().code == StatusCode::not_found);
  CHECK(executor->wait({1, 1}, Deadline::never()).error().code == StatusCode::not_found);
  const Fence fence = executor->submit(add_one(device, {1}).submission).value();
  REQUIRE(executor->wait(fence, Deadline::never()));
  CHECK(executor->wait({fence.queue, 0}, Deadline::never()).error().code == StatusCode::not_found);
  const auto ahead = executor->wait({fence.queue, 2}, Deadline::after(std::chrono::milliseconds(1)));
  CHECK(ahead.error().code == StatusCode::not_found);
  CHECK_THAT(ahead.error().message, Catch::Contains("never submitted"));
}

TEST_CASE("executor: of several waiters for one fence one gets the result, the others not_found", "[executor]") {
  const auto device = std::make_shared<SyntheticDevice>();
  const auto executor = ring(2);
  device->hold();
  const Fence fence = executor->submit(add_one(device, {1}).submission).value();
  std::vector<std::future<StatusCode>> waiters;
  for (int i = 0; i < 4; ++i) {
    waiters.push_back(std::async(std::launch::async, [&] {
      const auto measured = executor->wait(fence, Deadline::never());
      return measured ? StatusCode::ok : measured.error().code;
    }));
  }
  device->release();
  int taken = 0, missed = 0;
  for (auto& waiter : waiters) {
    const StatusCode code = waiter.get();
    taken += code == StatusCode::ok;
    missed += code == StatusCode::not_found;
  }
  CHECK(taken == 1);
  CHECK(missed == 3);
}

TEST_CASE("executor: results wait for their taker while the slots serve others", "[executor]") {
  const auto device = std::make_shared<SyntheticDevice>();
  const auto executor = ring(1);
  std::vector<Fence> fences;
  std::vector<Job> jobs;
  for (int i = 0; i < 10; ++i) {  // ten untaken results through one slot
    jobs.push_back(add_one(device, {static_cast<float>(i)}));
    fences.push_back(executor->submit(jobs.back().submission).value());
  }
  for (int i = 0; i < 10; ++i) {
    REQUIRE(executor->wait(fences[static_cast<std::size_t>(i)], Deadline::never()));
    CHECK(values_of(*jobs[static_cast<std::size_t>(i)].output) == std::vector<float>{static_cast<float>(i) + 1});
  }
}
