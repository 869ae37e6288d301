// The fences of one queue, the bell for waits on several, and the wait without a system call.
#include "executor/timeline.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <future>
#include <string>
#include <thread>

using namespace kiln;
using executor::CompletionBell;
using executor::spin_until;
using executor::Timeline;

namespace {

constexpr std::chrono::nanoseconds no_spin{0};

Measurement measurement_named(const std::string& variant) {
  Measurement measurement;
  measurement.variant = variant;
  return measurement;
}

std::string outcome_of_wait(const Result<Measurement>& result) {
  return result ? result->variant : result.error().text();
}

}  // namespace

TEST_CASE("timeline: values count from 1, and each result is had once, in any order", "[executor][timeline]") {
  using State = Timeline::State;
  Timeline timeline("queue a");
  for (std::uint64_t value = 1; value <= 4; ++value) CHECK(timeline.open(Deadline::never()) == value);
  CHECK(timeline.state(0) == State::gone);
  CHECK(timeline.state(1) == State::pending);
  CHECK(timeline.state(5) == State::gone);
  timeline.finish(3, measurement_named("third"));
  timeline.finish(1, io_error("the first failed"));
  timeline.announce();
  CHECK(timeline.state(1) == State::finished);
  CHECK(timeline.state(2) == State::pending);
  CHECK(timeline.state(3) == State::finished);
  for (const std::chrono::nanoseconds spin : {no_spin, std::chrono::nanoseconds(1000)}) {
    CHECK(outcome_of_wait(timeline.wait(2, {Clock::now()}, spin)) ==
          "timeout: queue a has not finished submission 2 by the deadline of the wait; the work continues");
  }
  CHECK(outcome_of_wait(timeline.wait(1, Deadline::never(), no_spin)) == "io: the first failed");
  CHECK(outcome_of_wait(timeline.wait(3, Deadline::never(), no_spin)) == "third");
  CHECK(timeline.state(3) == State::gone);
  CHECK(outcome_of_wait(timeline.wait(3, Deadline::never(), no_spin)) ==
        "not_found: fence 3 of queue a: the result was already taken");
  CHECK(timeline.gone(0).text() == "not_found: fence 0 of queue a was never submitted");
  CHECK(timeline.gone(3).text() == "not_found: fence 3 of queue a: the result was already taken");
  CHECK(timeline.gone(5).text() == "not_found: fence 5 of queue a was never submitted");
  timeline.finish(2, measurement_named("second"));
  timeline.finish(4, measurement_named("fourth"));
  CHECK(outcome_of_wait(timeline.wait(4, Deadline::never(), std::chrono::seconds(30))) == "fourth");
  CHECK(outcome_of_wait(timeline.wait(2, Deadline::never(), std::chrono::seconds(30))) == "second");
}

TEST_CASE("timeline: the job's deadline is reported once, and a reused entry knows nothing of the one before",
          "[executor][timeline]") {
  Timeline timeline("queue a");
  const Deadline passed{Clock::now()};
  const std::string by_job = "timeout: queue a has not finished submission 1 by the job's deadline; the work continues";
  CHECK(timeline.open(passed) == 1);
  CHECK(outcome_of_wait(timeline.wait(1, Deadline::never(), no_spin)) == by_job);
  auto later =
      std::async(std::launch::async, [&] { return outcome_of_wait(timeline.wait(1, Deadline::never(), no_spin)); });
  timeline.finish(1, measurement_named("late"));
  timeline.announce();
  CHECK(later.get() == "late");

  CHECK(timeline.open(Deadline::never()) == 2);
  CHECK(timeline.state(2) == Timeline::State::pending);
  CHECK(outcome_of_wait(timeline.wait(2, passed, no_spin)) ==
        "timeout: queue a has not finished submission 2 by the deadline of the wait; the work continues");
  timeline.finish(2, measurement_named("second"));
  CHECK(outcome_of_wait(timeline.wait(2, passed, no_spin)) == "second");
  CHECK(timeline.open(passed) == 3);
  CHECK(outcome_of_wait(timeline.wait(3, Deadline::never(), no_spin)) ==
        "timeout: queue a has not finished submission 3 by the job's deadline; the work continues");
}

TEST_CASE("timeline: a wait with a deadline ends as soon as the result is there", "[executor][timeline]") {
  Timeline timeline("queue a");
  CHECK(timeline.open(Deadline::after(std::chrono::hours(1))) == 1);
  auto waiting = std::async(std::launch::async, [&] {
    return outcome_of_wait(timeline.wait(1, Deadline::after(std::chrono::minutes(10)), no_spin));
  });
  timeline.finish(1, measurement_named("in time"));
  timeline.announce();
  REQUIRE(waiting.wait_for(std::chrono::seconds(120)) == std::future_status::ready);
  CHECK(waiting.get() == "in time");
}

TEST_CASE("spin: ends when it is done or its time has passed, and looks at once", "[executor][timeline]") {
  int looks = 0;
  const auto done_after = [&](int number) {
    looks = 0;
    return [&looks, number] { return ++looks > number; };
  };
  CHECK(spin_until(no_spin, done_after(0)));
  CHECK(looks == 1);
  for (const std::chrono::nanoseconds none : {no_spin, std::chrono::nanoseconds(-1)}) {
    CHECK_FALSE(spin_until(none, done_after(1)));
    CHECK(looks == 1);
  }
  CHECK(spin_until(std::chrono::seconds(60), done_after(1000)));
  CHECK(looks == 1001);
  CHECK_FALSE(spin_until(std::chrono::nanoseconds(1), [] { return false; }));
}

TEST_CASE("bell: a listener looks at once, after each ring, and until its deadline", "[executor][timeline]") {
  CompletionBell bell;
  bell.ring();  // nobody listens
  int looks = 0;
  CHECK(bell.listen({Clock::now()}, [&] { return ++looks == 1; }));
  CHECK(looks == 1);
  looks = 0;
  CHECK_FALSE(bell.listen({Clock::now()}, [&] { return ++looks < 0; }));
  CHECK(looks == 1);
  for (const Deadline deadline : {Deadline::never(), Deadline::after(std::chrono::minutes(10))}) {
    std::atomic<int> finished{0}, looked{0};
    auto listener = std::async(std::launch::async, [&] {
      return bell.listen(deadline, [&] {
        ++looked;
        return finished == 2;
      });
    });
    const Deadline patience = Deadline::after(std::chrono::seconds(60));
    while (looked == 0 && !patience.passed()) std::this_thread::yield();
    REQUIRE(looked > 0);
    finished = 1;
    bell.ring();
    while (looked == 1 && !patience.passed()) std::this_thread::yield();
    CHECK(looked > 1);
    finished = 2;
    bell.ring();
    CHECK(listener.wait_for(std::chrono::seconds(60)) == std::future_status::ready);
    CHECK(listener.get());
  }
}
