// SchedulingHooks: whose turn it is among a queue's threads, for who wants to decide that: then one of them runs at a
// time, from one step to the next. A queue without hooks is scheduled by the system.
//
// Thread-safety: each method is called by the threads that it schedules. Ownership: outlives the queue.
#pragma once

#include <cstdint>
#include <mutex>

namespace kiln::executor {

class SchedulingHooks {
 public:
  SchedulingHooks() = default;
  SchedulingHooks(const SchedulingHooks&) = delete;
  SchedulingHooks& operator=(const SchedulingHooks&) = delete;
  virtual ~SchedulingHooks() = default;

  // The caller is about to start a thread, which calls begin() as its first and end() as its last.
  virtual void start() noexcept = 0;
  virtual void begin() noexcept = 0;
  virtual void end() noexcept = 0;

  // Another thread may go on before the caller does. REQUIRES: no lock is held.
  virtual void step() noexcept = 0;
  // Until it is woken at the same place; the lock is let go meanwhile.
  virtual void sleep(const void* place, std::unique_lock<std::mutex>& lock) noexcept = 0;
  enum class Whom : std::uint8_t { invalid = 0, one, all };
  virtual void wake(const void* place, Whom whom) noexcept = 0;
};

}  // namespace kiln::executor
