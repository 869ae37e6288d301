// spin_until: waits a few microseconds without giving the core away, where a sleep and its wake-up would cost more.
//
// Thread-safety: as that of the condition. On a machine with one core it does not spin: nobody could make progress.
#pragma once

#include <kiln/clock.hpp>

#include <chrono>
#include <thread>

namespace kiln::executor {

inline void relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

// Whether `done` became true within the patience.
template <class Done>
bool spin_until(std::chrono::nanoseconds patience, Done done) {
  if (done()) return true;
  if (patience <= std::chrono::nanoseconds::zero()) return false;
  const Clock::time_point end = Clock::now() + patience;
  do {
    for (int turn = 0; turn < 16; ++turn) {
      relax();
      if (done()) return true;
    }
  } while (Clock::now() < end);
  return false;
}

}  // namespace kiln::executor
