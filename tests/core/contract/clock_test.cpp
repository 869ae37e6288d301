#include <kiln/clock.hpp>

#include <catch2/catch.hpp>

using namespace kiln;
using namespace std::chrono_literals;

TEST_CASE("deadline: never is never passed", "[contract]") {
  CHECK_FALSE(Deadline::never().passed());
  CHECK(Deadline::never().left() == std::chrono::nanoseconds::max());
  CHECK_FALSE(Deadline().passed());
}

TEST_CASE("deadline: after counts from now", "[contract]") {
  const Deadline hour = Deadline::after(1h);
  CHECK_FALSE(hour.passed());
  CHECK(hour.left() <= 1h);
  CHECK(hour.left() > 30min);
  CHECK(Deadline::after(0ns).passed());
  CHECK(Deadline::after(-1h).passed());
}

TEST_CASE("deadline: what is left is never negative, and nothing overflows", "[contract]") {
  const Deadline past{Clock::now() - 1h};
  CHECK(past.passed());
  CHECK(past.left() == 0ns);
  CHECK(Deadline::after(std::chrono::nanoseconds::max()).at == Deadline::never().at);
}

TEST_CASE("clock: now grows and is the steady clock's", "[contract]") {
  const std::uint64_t first = now_ns();
  const auto steady = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch());
  const std::uint64_t second = now_ns();
  CHECK(first <= static_cast<std::uint64_t>(steady.count()));
  CHECK(static_cast<std::uint64_t>(steady.count()) <= second);
}
