#include "executor/timeline.hpp"

#include "executor/spin.hpp"

#include <algorithm>

namespace kiln::executor {

std::uint64_t Timeline::open(Deadline deadline) {
  const std::lock_guard lock(mutex_);
  entries_.try_emplace(last_ + 1, Entry{deadline, false, std::nullopt});
  return ++last_;
}

void Timeline::finish(std::uint64_t value, Result<Measurement> outcome) {
  {
    const std::lock_guard lock(mutex_);
    entries_.at(value).outcome.emplace(std::move(outcome));
    finished_through_.store(value, std::memory_order_release);
  }
  finished_.notify_all();
}

Status Timeline::gone(std::uint64_t value) const {
  const bool known = value != 0 && value <= last_;
  return not_found("fence " + std::to_string(value) + " of " + name_ +
                   (known ? ": its result was taken already" : ": was never submitted"));
}

Result<Measurement> Timeline::wait(std::uint64_t value, Deadline deadline, std::chrono::nanoseconds spin) {
  const auto finished = [&] { return finished_through_.load(std::memory_order_acquire) >= value; };
  spin_until(std::min(spin, deadline.left()), finished);

  std::unique_lock lock(mutex_);
  auto at = entries_.find(value);
  if (at == entries_.end()) return gone(value);
  if (!finished()) {
    const Deadline limit{at->second.late ? deadline.at : std::min(deadline.at, at->second.deadline.at)};
    if (limit.at == Deadline::never().at) {
      finished_.wait(lock, finished);
    } else {
      finished_.wait_until(lock, limit.at, finished);
    }
    at = entries_.find(value);
    if (at == entries_.end()) return gone(value);  // another waiter took it
  }
  if (!at->second.outcome) {
    const bool late = at->second.deadline.passed();
    at->second.late = at->second.late || late;
    return timed_out("fence " + std::to_string(value) + " of " + name_ + ": not finished at " +
                     (late ? "the job's deadline" : "the deadline of the wait") + "; the work goes on");
  }
  Result<Measurement> outcome = std::move(*at->second.outcome);
  entries_.erase(at);
  return outcome;
}

}  // namespace kiln::executor
