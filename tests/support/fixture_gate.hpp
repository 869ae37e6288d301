// FixtureGate: where a fixture's work waits until the test lets it on, so that tests of "slow" need no clock.
//
// Thread-safety: every method from any thread. Ownership: outlives whoever may still stand at it. A new gate is open.
#pragma once

#include <kiln/clock.hpp>

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <stop_token>

namespace kiln::support {

class FixtureGate {
 public:
  void close();
  void open();
  void let_pass(std::size_t count);  // opens for the next `count` only; the gate stays closed for those after

  // Waits until the gate lets one on; false where `stop` was requested first.
  bool pass(const std::stop_token& stop);

  std::size_t waiting() const;
  // Until at least `count` stand at the gate; false where the deadline passed first.
  bool await_waiting(std::size_t count, Deadline deadline) const;

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable_any changed_;
  bool closed_ = false;
  std::size_t tickets_ = 0;
  std::size_t waiting_ = 0;
};

}  // namespace kiln::support
