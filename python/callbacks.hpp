// InPython: how a callback of Kiln, on any thread, enters Python. CallbackOf: whose callback it is.
//
// Thread-safety: all of it. A thread that takes the GIL while the interpreter ends is ended itself, which aborts the
// process where it is inside Kiln. So no callback enters Python after refuse_callbacks(), which the module's exit
// handler calls.
//
//   const InPython python;
//   if (!python) return 0;  // the interpreter ends
#pragma once

#include <Python.h>

namespace kiln::python {

class InPython {
 public:
  InPython() noexcept;
  InPython(const InPython&) = delete;
  InPython& operator=(const InPython&) = delete;
  ~InPython();
  explicit operator bool() const noexcept { return entered_; }

 private:
  bool entered_;
  PyGILState_STATE state_{};
};

// Marks the object whose callback runs on this thread: what waits for that object there waits for itself.
class CallbackOf {
 public:
  explicit CallbackOf(const PyObject* object) noexcept;
  CallbackOf(const CallbackOf&) = delete;
  CallbackOf& operator=(const CallbackOf&) = delete;
  ~CallbackOf();

  static bool any() noexcept;
  static bool of(const PyObject* object) noexcept;

 private:
  const PyObject* const object_;
  const CallbackOf* const outer_;
};

// Lets no other callback enter Python.
void refuse_callbacks() noexcept;
// Waits for those that are in Python. REQUIRES: the caller does not hold the GIL.
void await_callbacks() noexcept;

// Keeps the count of callbacks right in a forked child. Called once.
void watch_forks() noexcept;

}  // namespace kiln::python
