#include "support/fixture_gate.hpp"

namespace kiln::support {

void FixtureGate::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  tickets_ = 0;
}

void FixtureGate::open() {
  const std::lock_guard lock(mutex_);
  closed_ = false;
  changed_.notify_all();
}

void FixtureGate::let_pass(std::size_t count) {
  const std::lock_guard lock(mutex_);
  tickets_ += count;
  changed_.notify_all();
}

bool FixtureGate::pass(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  ++waiting_;
  changed_.notify_all();
  const bool let_on = changed_.wait(lock, stop, [this] { return !closed_ || tickets_ > 0; });
  --waiting_;
  if (let_on && closed_) --tickets_;
  return let_on;
}

std::size_t FixtureGate::waiting() const {
  const std::lock_guard lock(mutex_);
  return waiting_;
}

bool FixtureGate::await_waiting(std::size_t count, Deadline deadline) const {
  std::unique_lock lock(mutex_);
  const auto arrived = [&] { return waiting_ >= count; };
  if (deadline.at == Clock::time_point::max()) {
    changed_.wait(lock, arrived);
    return true;
  }
  return changed_.wait_until(lock, deadline.at, arrived);
}

}  // namespace kiln::support
