// Timeline: the fences of one queue, with values from 1. Each result is stored until it is taken once.
//
// Results that are not taken remain until the timeline is destroyed. Entries are reused, so a steady stream of jobs
// allocates nothing.
// Thread-safety: every method from any thread. Ownership: owns the results.
#pragma once

#include <kiln/clock.hpp>
#include <kiln/measurement.hpp>
#include <kiln/status.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace kiln::executor {

class Timeline {
 public:
  explicit Timeline(std::string name) : name_(std::move(name)) {}

  // Returns the next value. deadline: of the job.
  std::uint64_t open(Deadline deadline);
  // Once per value, in any order; announce() follows, once for several values if possible, and without a lock.
  void finish(std::uint64_t value, Result<Measurement> outcome);
  void announce() noexcept { finished_.notify_all(); }

  // Spins for at most `spin`, then sleeps. timeout: the earlier of `deadline` and the job's deadline has passed; after the
  // job's deadline was reported once, later calls use `deadline` only. not_found: never opened, or already taken.
  Result<Measurement> wait(std::uint64_t value, Deadline deadline, std::chrono::nanoseconds spin);

  enum class State : std::uint8_t { invalid = 0, pending, finished, gone };
  State state(std::uint64_t value) const;
  Status gone(std::uint64_t value) const;  // the not_found of wait()

 private:
  struct Entry {
    Deadline deadline;
    bool late = false;  // the job's deadline was reported
    std::optional<Result<Measurement>> outcome;
  };
  using Entries = std::unordered_map<std::uint64_t, Entry>;

  void advance();  // finished_through_. REQUIRES: mutex_ is held
  Status gone_locked(std::uint64_t value) const;

  const std::string name_;
  std::atomic<std::uint64_t> finished_through_{0};  // all values up to this one are finished
  mutable std::mutex mutex_;
  std::condition_variable finished_;
  std::uint64_t last_ = 0;
  Entries entries_;
  std::vector<Entries::node_type> spare_;
};

}  // namespace kiln::executor
