// happens: waits for an event of another thread or process.
//
// Thread-safety: as the condition. Ownership: borrows the condition.
#pragma once

#include <kiln/clock.hpp>

#include <chrono>
#include <thread>

namespace kiln::test {

// Returns whether the condition holds within a minute: patience for two busy cores, not a bound on the speed.
template <class Condition>
bool happens(const Condition& condition) {
  for (const Deadline deadline = Deadline::after(std::chrono::seconds(60)); !deadline.passed();) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return condition();
}

}  // namespace kiln::test
