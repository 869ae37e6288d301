// Timeline: the fences of one queue: values from 1, finished in order, each result kept until it is taken, once.
//
// Thread-safety: open() and wait() from any thread; finish() from one thread, in the order of the values.
// Ownership: owns the results. A result that nobody takes stays until the timeline dies: results cannot be lost.
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

namespace kiln::executor {

class Timeline {
 public:
  explicit Timeline(std::string name) : name_(std::move(name)) {}

  // The next value. `deadline` is the job's own.
  std::uint64_t open(Deadline deadline);
  void finish(std::uint64_t value, Result<Measurement> outcome);

  // Spins for `spin` at most, then sleeps. timeout at the earlier of `deadline` and the job's own; once the job's own
  // has been reported, later calls wait for `deadline` alone. not_found: never opened, or taken already.
  Result<Measurement> wait(std::uint64_t value, Deadline deadline, std::chrono::nanoseconds spin);

 private:
  struct Entry {
    Deadline deadline;
    bool late = false;  // its own deadline has been reported
    std::optional<Result<Measurement>> outcome;
  };

  Status gone(std::uint64_t value) const;  // REQUIRES: mutex_ is held

  const std::string name_;
  std::atomic<std::uint64_t> finished_through_{0};
  std::mutex mutex_;
  std::condition_variable finished_;
  std::uint64_t last_ = 0;
  std::unordered_map<std::uint64_t, Entry> entries_;
};

}  // namespace kiln::executor
