#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include "interpreter.hpp"

#include <pthread.h>

#include <condition_variable>
#include <mutex>
#include <utility>

namespace kiln::python {
namespace {

// As long as the process: threads of Kiln may call back until its end.
struct Entrance {
  std::mutex mutex;
  std::condition_variable left;
  unsigned inside = 0;
  bool closed = false;
};
Entrance& entrance() {
  static auto* const only = new Entrance;
  return *only;
}
thread_local unsigned depth = 0;  // callbacks that are inside on this thread
thread_local const CallbackOf* innermost = nullptr;

}  // namespace

InPython::InPython() noexcept {
  Entrance& at = entrance();
  {
    const std::lock_guard lock(at.mutex);
    entered_ = !at.closed;
    if (!entered_) return;
    ++at.inside;
  }
  ++depth;
  state_ = PyGILState_Ensure();
}

InPython::~InPython() {
  if (!entered_) return;
  PyGILState_Release(state_);
  --depth;
  Entrance& at = entrance();
  const std::lock_guard lock(at.mutex);
  if (--at.inside == 0) at.left.notify_all();
}

CallbackOf::CallbackOf(const PyObject* object) noexcept : object_(object), outer_(std::exchange(innermost, this)) {}

CallbackOf::~CallbackOf() { innermost = outer_; }

bool CallbackOf::any() noexcept { return innermost != nullptr; }

bool CallbackOf::of(const PyObject* object) noexcept {
  const CallbackOf* one = innermost;
  while (one != nullptr && one->object_ != object) one = one->outer_;
  return one != nullptr;
}

void refuse_callbacks() noexcept {
  const std::lock_guard lock(entrance().mutex);
  entrance().closed = true;
}

void await_callbacks() noexcept {
  Entrance& at = entrance();
  std::unique_lock lock(at.mutex);
  at.left.wait(lock, [&] { return at.inside == 0; });
}

void watch_forks() noexcept {
  static_cast<void>(pthread_atfork([] { entrance().mutex.lock(); }, [] { entrance().mutex.unlock(); },
                                   [] {
                                     entrance().inside = depth;  // the other threads are not in the child
                                     entrance().mutex.unlock();
                                   }));
}

}  // namespace kiln::python
