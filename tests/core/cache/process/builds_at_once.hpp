// BuildsAtOnce: how many builds there were among the processes that share it, and how many of them at one time.
//
// Thread-safety: every method from any thread, and from any process that shares it (shared.hpp). Ownership: a value.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>

namespace kiln::test {

struct BuildsAtOnce {
  std::atomic<int> building{0}, most{0}, builds{0};

  // One build that takes so long.
  void build(std::chrono::milliseconds time) {
    const int now = ++building;
    int before = most;
    while (before < now && !most.compare_exchange_weak(before, now)) continue;
    std::this_thread::sleep_for(time);
    --building;
    ++builds;
  }
};

}  // namespace kiln::test
