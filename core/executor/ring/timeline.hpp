// Timeline: the fences of one queue: values from 1, each result kept until it is taken, once.
//
// Thread-safety: every method from any thread. Ownership: owns the results. A result that nobody takes stays until the
// timeline dies: results cannot be lost. Entries are used again, so that a steady stream of jobs allocates nothing.
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

  // The next value. `deadline` is the job's own.
  std::uint64_t open(Deadline deadline);
  // Once for each value, in any order; then announce(), which may be for several and need not be under a lock.
  void finish(std::uint64_t value, Result<Measurement> outcome);
  void announce() noexcept { finished_.notify_all(); }

  // Spins for `spin` at most, then sleeps. timeout at the earlier of `deadline` and the job's own; once the job's own
  // has been reported, later calls wait for `deadline` alone. not_found: never opened, or taken already.
  Result<Measurement> wait(std::uint64_t value, Deadline deadline, std::chrono::nanoseconds spin);

  enum class State : std::uint8_t { invalid = 0, pending, finished, gone };
  State state(std::uint64_t value) const;
  Status gone(std::uint64_t value) const;  // the not_found of wait()

 private:
  struct Entry {
    Deadline deadline;
    bool late = false;  // its own deadline has been reported
    std::optional<Result<Measurement>> outcome;
  };
  using Entries = std::unordered_map<std::uint64_t, Entry>;

  void advance();  // finished_through_. REQUIRES: mutex_ is held
  Status gone_locked(std::uint64_t value) const;

  const std::string name_;
  std::atomic<std::uint64_t> finished_through_{0};  // every value up to this one is finished
  mutable std::mutex mutex_;
  std::condition_variable finished_;
  std::uint64_t last_ = 0;
  Entries entries_;
  std::vector<Entries::node_type> spare_;
};

}  // namespace kiln::executor
