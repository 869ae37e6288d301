// StopScope: the flag that ends long waits of this thread, as Ctrl-C sets it.
//
// While a scope lives, builds that its thread asks for are given up within 50 ms after `*stop` becomes true. A thread
// that works for another one opens a scope with that one's current_stop(). Thread-safety: each thread has its own.
// Ownership: borrows the flag. Scopes of one thread nest.
#pragma once

#include <atomic>

namespace kiln {

class StopScope {
 public:
  // null: never.
  explicit StopScope(const std::atomic<bool>* stop) noexcept;
  StopScope(const StopScope&) = delete;
  StopScope& operator=(const StopScope&) = delete;
  ~StopScope();

 private:
  const std::atomic<bool>* const before_;
};

const std::atomic<bool>* current_stop() noexcept;

}  // namespace kiln
