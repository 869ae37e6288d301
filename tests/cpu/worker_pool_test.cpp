#include "onednn/worker_pool.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <vector>

namespace kiln::cpu {
namespace {

using Counts = std::vector<std::atomic<int>>;

bool each_once(const Counts& counts) {
  for (const auto& count : counts) {
    if (count != 1) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("worker pool: every task runs once, on a thread of the pool, in round after round") {
  for (const int threads : {1, 2, 3, 8}) {
    WorkerPool pool(threads);
    int wrong = 0;
    for (int round = 0; round < 500; ++round) {
      Counts counts(static_cast<std::size_t>(round % 37));
      std::atomic<int> strangers{0};
      pool.run(counts.size(), [&](std::size_t task, std::size_t thread) {
        ++counts[task];
        if (thread >= static_cast<std::size_t>(threads)) ++strangers;
      });
      if (!each_once(counts) || strangers != 0) ++wrong;
    }
    INFO(threads << " threads");
    CHECK(wrong == 0);
  }
}

TEST_CASE("worker pool: one thread never has two tasks at a time") {
  WorkerPool pool(4);
  std::vector<std::atomic<int>> busy(4);
  std::atomic<int> clashes{0};
  for (int round = 0; round < 200; ++round) {
    pool.run(16, [&](std::size_t, std::size_t thread) {
      if (busy[thread].fetch_add(1) != 0) ++clashes;
      busy[thread].fetch_sub(1);
    });
  }
  CHECK(clashes == 0);
}

TEST_CASE("worker pool: what a task throws comes out once all have ended, and the pool goes on") {
  WorkerPool pool(3);
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> inside{0};
    const auto run = [&] {
      pool.run(20, [&](std::size_t task, std::size_t) {
        ++inside;
        if (task == 7) {
          --inside;
          throw std::runtime_error("seven");
        }
        --inside;
      });
    };
    CHECK_THROWS_WITH(run(), "seven");
    CHECK(inside == 0);
    Counts counts(9);
    pool.run(counts.size(), [&](std::size_t task, std::size_t) { ++counts[task]; });
    CHECK(each_once(counts));
  }
}

TEST_CASE("worker pool: threads that went to sleep wake up for the next run") {
  WorkerPool pool(2);
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    // Each of two tasks waits for the other to have begun: one thread alone could not end this.
    std::atomic<int> begun{0};
    pool.run(2, [&](std::size_t, std::size_t) {
      ++begun;
      while (begun < 2) std::this_thread::yield();
    });
    CHECK(begun == 2);
  }
}

}  // namespace kiln::cpu
