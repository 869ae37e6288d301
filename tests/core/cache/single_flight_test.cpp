// SingleFlight: one does the work, all get the answer, nobody waits for another key.
#include "cache/single_flight.hpp"
#include "core/cache/rendezvous.hpp"

#include <catch2/catch.hpp>

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

// Runs `work` for one key on many threads, all of which wait for the one that works.
std::vector<Flights::Landing> fly(Flights& flights, int threads, const std::function<Result<int>()>& work) {
  std::vector<Flights::Landing> landings(static_cast<std::size_t>(threads), {internal_error("did not land"), false});
  std::vector<std::thread> running;
  const auto wait_for_all = [&]() -> Result<int> {
    while (flights.waiting("key") < static_cast<std::size_t>(threads - 1)) std::this_thread::yield();
    return work();
  };
  for (auto& landing : landings) {
    running.emplace_back([&] { landing = *flights.run("key", Deadline::never(), wait_for_all); });
  }
  for (std::thread& thread : running) thread.join();
  return landings;
}

TEST_CASE("cache::single_flight: 64 threads, one key, one piece of work") {
  Flights flights;
  std::atomic<int> worked{0};
  const auto landings = fly(flights, 64, [&]() -> Result<int> { return ++worked; });
  int own = 0;
  for (const auto& landing : landings) {
    REQUIRE(landing.result);
    CHECK(*landing.result == 1);
    own += landing.own;
  }
  CHECK(own == 1);
  CHECK(worked == 1);
}

TEST_CASE("cache::single_flight: a failure reaches all who wait and nobody after them") {
  Flights flights;
  std::atomic<int> worked{0};
  const auto landings = fly(flights, 16, [&]() -> Result<int> {
    ++worked;
    return invalid_argument("the reason");
  });
  for (const auto& landing : landings) {
    REQUIRE_FALSE(landing.result);
    CHECK(landing.result.error().message == "the reason");
  }
  CHECK(worked == 1);
  const auto next = flights.run("key", Deadline::never(), [&]() -> Result<int> { return ++worked; });
  REQUIRE(next);
  CHECK(*next->result == 2);
}

TEST_CASE("cache::single_flight: what the work throws is an answer too, for all") {
  Flights flights;
  for (const auto& landing : fly(flights, 4, []() -> Result<int> { throw std::runtime_error("thrown"); })) {
    CHECK(landing.result.error().text() == "internal: thrown");
  }
  for (const auto& landing : fly(flights, 4, []() -> Result<int> { throw std::bad_alloc(); })) {
    CHECK(landing.result.error().code == StatusCode::unavailable);
  }
  for (const auto& landing : fly(flights, 4, []() -> Result<int> { throw 5; })) {
    CHECK(landing.result.error().code == StatusCode::internal);
  }
  CHECK(flights.run("key", Deadline::never(), []() -> Result<int> { return 1; })->own);
}

TEST_CASE("cache::single_flight: who waits does so until the deadline, and the work lands all the same") {
  Flights flights;
  std::latch begun(1), finish(1);
  std::optional<Flights::Landing> worked;
  std::thread working([&] {
    worked = flights.run("key", Deadline::never(), [&]() -> Result<int> {
      begun.count_down();
      finish.wait();
      return 7;
    });
  });
  begun.wait();
  const auto not_asked = []() -> Result<int> { return 0; };
  CHECK_FALSE(flights.run("key", Deadline::after(std::chrono::milliseconds(5)), not_asked));
  CHECK(flights.waiting("key") == 0);
  std::optional<Flights::Landing> patient;
  std::thread waiting([&] { patient = flights.run("key", Deadline::after(std::chrono::hours(1)), not_asked); });
  while (flights.waiting("key") == 0) std::this_thread::yield();
  finish.count_down();
  working.join();
  waiting.join();
  REQUIRE(worked);
  CHECK(worked->own);
  REQUIRE(patient);
  CHECK_FALSE(patient->own);
  CHECK(*patient->result == 7);
}

TEST_CASE("cache::single_flight: distinct keys fly at one time") {
  Flights flights;
  Rendezvous both(2);
  bool met[2] = {false, false};
  const auto work = [&](int i) {
    return [&, i]() -> Result<int> {
      met[i] = both.meet();
      return i;
    };
  };
  std::thread other([&] { flights.run("one", Deadline::never(), work(0)); });
  flights.run("two", Deadline::never(), work(1));
  other.join();
  CHECK(met[0]);
  CHECK(met[1]);
}

}  // namespace
}  // namespace kiln::test
