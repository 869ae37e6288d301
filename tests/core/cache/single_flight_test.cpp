// SingleFlight: one does the work, all get the result, nobody waits for another key.
#include "cache/single_flight.hpp"
#include "core/cache/rendezvous.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <atomic>
#include <functional>
#include <latch>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace kiln::test {
namespace {

using Flights = SingleFlight<std::string, int, std::hash<std::string>>;

Result<int> never_late() { return internal_error("the deadline passed"); }

// Runs `work` for one key on many threads, all of which wait for the one that works.
std::vector<Result<int>> run_on(Flights& flights, int threads, const std::function<Result<int>()>& work) {
  std::vector<Result<int>> results(static_cast<std::size_t>(threads), Result<int>(internal_error("no result")));
  std::vector<std::thread> running;
  const auto wait_for_all = [&]() -> Result<int> {
    while (flights.waiting("key") < static_cast<std::size_t>(threads - 1)) std::this_thread::yield();
    return work();
  };
  for (auto& result : results) {
    running.emplace_back([&] { result = flights.run("key", Deadline::never(), wait_for_all, never_late); });
  }
  for (std::thread& thread : running) thread.join();
  return results;
}

TEST_CASE("cache::single_flight: 64 threads, one key, one piece of work") {
  Flights flights;
  std::atomic<int> worked{0};
  for (const auto& result : run_on(flights, 64, [&]() -> Result<int> { return ++worked; })) {
    REQUIRE(result);
    CHECK(*result == 1);
  }
  CHECK(worked == 1);
}

TEST_CASE("cache::single_flight: a failure reaches all who wait and nobody after them") {
  Flights flights;
  std::atomic<int> worked{0};
  const auto results = run_on(flights, 16, [&]() -> Result<int> {
    ++worked;
    return invalid_argument("the reason");
  });
  for (const auto& result : results) {
    REQUIRE_FALSE(result);
    CHECK(result.error().message == "the reason");
  }
  CHECK(worked == 1);
  const auto next = flights.run(
      "key", Deadline::never(), [&]() -> Result<int> { return ++worked; }, never_late);
  REQUIRE(next);
  CHECK(*next == 2);
}

TEST_CASE("cache::single_flight: what the work throws is a result too, for all") {
  Flights flights;
  for (const auto& result : run_on(flights, 4, []() -> Result<int> { throw std::runtime_error("thrown"); })) {
    CHECK(result.error().text() == "internal: thrown");
  }
  for (const auto& result : run_on(flights, 4, []() -> Result<int> { throw std::bad_alloc(); })) {
    CHECK(result.error().code == StatusCode::unavailable);
  }
  for (const auto& result : run_on(flights, 4, []() -> Result<int> { throw 5; })) {
    CHECK(result.error().code == StatusCode::internal);
  }
  bool worked = false;
  const auto work = [&]() -> Result<int> {
    worked = true;
    return 1;
  };
  CHECK(flights.run("key", Deadline::never(), work, never_late));
  CHECK(worked);
}

TEST_CASE("cache::single_flight: a caller waits until its deadline, and the work goes on") {
  Flights flights;
  std::latch begun(1), finish(1);
  std::optional<Result<int>> worked;
  std::thread working([&] {
    worked = flights.run(
        "key", Deadline::never(),
        [&]() -> Result<int> {
          begun.count_down();
          finish.wait();
          return 7;
        },
        never_late);
  });
  begun.wait();
  const auto not_called = []() -> Result<int> { return 0; };
  const auto late = []() -> Result<int> { return -1; };
  CHECK(*flights.run("key", Deadline::after(std::chrono::milliseconds(5)), not_called, late) == -1);
  CHECK(*flights.run("key", Deadline::after(std::chrono::nanoseconds(0)), not_called, late) == -1);
  CHECK(flights.waiting("key") == 0);
  std::optional<Result<int>> patient;
  std::thread waiting([&] { patient = flights.run("key", Deadline::after(std::chrono::hours(1)), not_called, late); });
  while (flights.waiting("key") == 0) std::this_thread::yield();
  finish.count_down();
  working.join();
  waiting.join();
  REQUIRE(worked);
  CHECK(**worked == 7);
  REQUIRE(patient);
  CHECK(**patient == 7);
}

TEST_CASE("cache::single_flight: distinct keys run at one time") {
  Flights flights;
  Rendezvous both(2);
  bool met[2] = {false, false};
  const auto work = [&](int i) {
    return [&, i]() -> Result<int> {
      met[i] = both.meet();
      return i;
    };
  };
  std::thread other([&] { (void)flights.run("one", Deadline::never(), work(0), never_late); });
  (void)flights.run("two", Deadline::never(), work(1), never_late);
  other.join();
  CHECK(met[0]);
  CHECK(met[1]);
}

}  // namespace
}  // namespace kiln::test
