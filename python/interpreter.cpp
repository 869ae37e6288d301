#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include "interpreter.hpp"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
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

std::atomic<unsigned> calls{0};  // that are outside of Python
std::atomic<bool> calls_are_refused{false};
thread_local unsigned calls_here = 0;
thread_local bool may_always_call = false;

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

OutsidePython::OutsidePython() noexcept {
  ++calls_here;
  ++calls;
  if (!calls_are_refused || may_always_call) return;
  --calls;
  for (;;) pause();
}

OutsidePython::~OutsidePython() {
  --calls;
  --calls_here;
}

void refuse_calls() noexcept {
  may_always_call = true;
  calls_are_refused = true;
}

void await_calls() noexcept {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (calls != calls_here && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void watch_forks() noexcept {
  static_cast<void>(pthread_atfork([] { entrance().mutex.lock(); }, [] { entrance().mutex.unlock(); },
                                   [] {
                                     entrance().inside = depth;  // the other threads are not in the child
                                     calls = calls_here;
                                     entrance().mutex.unlock();
                                   }));
}

}  // namespace kiln::python
