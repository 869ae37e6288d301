// StopScope: a cancellation flag for the long waits of a thread, for example for Ctrl-C.
//
// While a scope exists, requests of its thread for builds are cancelled within 50 ms after `*stop` becomes true. A worker
// thread opens a scope with the current_stop() of the requesting thread. Scopes of one thread nest.
// Thread-safety: each thread has its own scopes. Ownership: the scope borrows the flag.
//
//   const kiln::StopScope scope(&interrupted);
//   auto acquired = cache.get_or_build(key, source, device);  // cancelled once `interrupted` is true
#pragma once

#include <atomic>

namespace [[gnu::visibility("default")]] kiln {

class StopScope {
 public:
  // null: never stops.
  explicit StopScope(const std::atomic<bool>* stop) noexcept;
  StopScope(const StopScope&) = delete;
  StopScope& operator=(const StopScope&) = delete;
  ~StopScope();

 private:
  const std::atomic<bool>* const before_;
};

const std::atomic<bool>* current_stop() noexcept;

}  // namespace kiln
