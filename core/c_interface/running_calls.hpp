// RunningCalls: how many calls use a handle, so that closing it can wait for them.
//
// Threads count in lines of memory of their own: a call costs two atomic additions that no other core delays.
// Thread-safety: every method from any thread. Ownership: the handle's.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace kiln::c_interface {

class RunningCalls {
 public:
  class Scope {
   public:
    explicit Scope(RunningCalls& calls) noexcept : count_(calls.of_this_thread()) { count_.fetch_add(1); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope() { count_.fetch_sub(1); }

   private:
    std::atomic<std::int32_t>& count_;
  };

  void wait_until_none() const {
    for (const Line& line : lines_) {
      while (line.count.load() != 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

 private:
  struct alignas(64) Line {
    std::atomic<std::int32_t> count{0};
  };

  std::atomic<std::int32_t>& of_this_thread() noexcept {
    // Has another address in each thread; initial-exec: found without a call.
    [[gnu::tls_model("initial-exec")]] static thread_local constinit char here = 0;
    return lines_[(reinterpret_cast<std::uintptr_t>(&here) >> 12U) % lines_.size()].count;
  }

  std::array<Line, 16> lines_;
};

}  // namespace kiln::c_interface
