#include "executor/timeline.hpp"

#include <algorithm>

namespace kiln::executor {

std::uint64_t Timeline::open(Deadline deadline) {
  const std::lock_guard lock(mutex_);
  if (spare_.empty()) {
    entries_.try_emplace(last_ + 1, Entry{deadline, false, std::nullopt});
  } else {
    Entries::node_type node = std::move(spare_.back());
    spare_.pop_back();
    node.key() = last_ + 1;
    node.mapped().deadline = deadline;
    node.mapped().late = false;
    node.mapped().outcome.reset();
    entries_.insert(std::move(node));
  }
  return ++last_;
}

void Timeline::finish(std::uint64_t value, Result<Measurement> outcome) {
  const std::lock_guard lock(mutex_);
  entries_.at(value).outcome.emplace(std::move(outcome));
  advance();
}

void Timeline::advance() {
  std::uint64_t through = finished_through_.load(std::memory_order_relaxed);
  while (through < last_) {
    const auto next = entries_.find(through + 1);
    if (next != entries_.end() && !next->second.outcome) break;
    ++through;  // finished, or already taken
  }
  finished_through_.store(through, std::memory_order_release);
}

Status Timeline::gone_locked(std::uint64_t value) const {
  const bool known = value != 0 && value <= last_;
  return not_found("fence " + std::to_string(value) + " of " + name_ +
                   (known ? ": the result was already taken" : " was never submitted"));
}

Status Timeline::gone(std::uint64_t value) const {
  const std::lock_guard lock(mutex_);
  return gone_locked(value);
}

Timeline::State Timeline::state(std::uint64_t value) const {
  const std::lock_guard lock(mutex_);
  const auto at = entries_.find(value);
  if (at == entries_.end()) return State::gone;
  return at->second.outcome ? State::finished : State::pending;
}

Result<Measurement> Timeline::wait(std::uint64_t value, Deadline deadline, std::chrono::nanoseconds spin) {
  if (spin > std::chrono::nanoseconds::zero()) {
    spin_until(std::min(spin, deadline.left()),
               [&] { return finished_through_.load(std::memory_order_acquire) >= value; });
  }
  std::unique_lock lock(mutex_);
  auto at = entries_.find(value);
  if (at == entries_.end()) return gone_locked(value);
  if (!at->second.outcome) {
    const Deadline limit{at->second.late ? deadline.at : std::min(deadline.at, at->second.deadline.at)};
    // Another waiter may have taken the entry, and its node may be reused for another value.
    const auto finished = [&] {
      at = entries_.find(value);
      return at == entries_.end() || at->second.outcome.has_value();
    };
    if (limit.at == Deadline::never().at) {
      finished_.wait(lock, finished);
    } else {
      finished_.wait_until(lock, limit.at, finished);
    }
    if (at == entries_.end()) return gone_locked(value);
  }
  if (!at->second.outcome) {
    const bool late = at->second.deadline.passed();
    at->second.late = at->second.late || late;
    return timed_out(name_ + " has not finished submission " + std::to_string(value) + " by " +
                     (late ? "the job's deadline" : "the deadline of the wait") + "; the work continues");
  }
  Result<Measurement> outcome = std::move(*at->second.outcome);
  at->second.outcome.reset();
  spare_.push_back(entries_.extract(at));
  return outcome;
}

}  // namespace kiln::executor
