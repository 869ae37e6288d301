// Python's objects, exceptions and calls back into Python.
//
// Object: owns one reference to a Python object. Raised: holds an exception. SavedError: keeps the exception that is
// set.
//
// Thread-safety: REQUIRES the GIL. Ownership: their own.
#pragma once

#include <Python.h>
#include <cxxabi.h>
#include <unistd.h>

#include <type_traits>
#include <utility>

namespace kiln::python {

// Runs `work`, in which other Python code may run. While the interpreter ends, Python ends each other thread that takes
// the GIL by unwinding its stack: destructors would run without the GIL. Such a thread stays here instead, until the
// process ends.
template <class Work>
std::invoke_result_t<Work> in_python(Work&& work) {
  try {
    return work();
  } catch (const abi::__forced_unwind&) {
    for (;;) pause();
  }
}

class Object {
 public:
  Object() noexcept = default;
  explicit Object(PyObject* owned) noexcept : object_(owned) {}
  Object(Object&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Object& operator=(Object&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Object() {
    in_python([this] { Py_XDECREF(object_); });
  }

  static Object borrowed(PyObject* object) noexcept {
    Py_XINCREF(object);
    return Object(object);
  }
  PyObject* get() const noexcept { return object_; }
  PyObject* release() noexcept { return std::exchange(object_, nullptr); }
  void clear() noexcept { const Object old = std::move(*this); }
  explicit operator bool() const noexcept { return object_ != nullptr; }

 private:
  PyObject* object_ = nullptr;
};

// For tp_traverse: not 0 ends it.
inline int visit_object(PyObject* object, visitproc visit, void* argument) {
  return object == nullptr ? 0 : visit(object, argument);
}

// An exception that is to be raised elsewhere.
class Raised {
 public:
  // Takes the exception that is set, if any.
  void take() noexcept {
    PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
    PyErr_Fetch(&type, &value, &trace);
    if (type != nullptr) in_python([&] { PyErr_NormalizeException(&type, &value, &trace); });
    if (value != nullptr && trace != nullptr) PyException_SetTraceback(value, trace);
    type_ = Object(type), value_ = Object(value), trace_ = Object(trace);
  }
  void raise() noexcept { PyErr_Restore(type_.release(), value_.release(), trace_.release()); }
  void clear() noexcept { type_.clear(), value_.clear(), trace_.clear(); }
  int traverse(visitproc visit, void* argument) const {
    for (const Object* one : {&type_, &value_, &trace_}) {
      if (const int end = visit_object(one->get(), visit, argument); end != 0) return end;
    }
    return 0;
  }
  PyObject* value() const noexcept { return value_.get(); }
  Object take_value() noexcept {
    Object value = std::move(value_);
    clear();
    return value;
  }
  explicit operator bool() const noexcept { return static_cast<bool>(type_); }

 private:
  Object type_, value_, trace_;
};

// Sets the exception that is set now, or none, again at the end. For code that may run other code meanwhile.
class SavedError {
 public:
  SavedError() noexcept { raised_.take(); }
  SavedError(const SavedError&) = delete;
  SavedError& operator=(const SavedError&) = delete;
  ~SavedError() { raised_.raise(); }

 private:
  Raised raised_;
};

// InPython: how a callback of Kiln, on any thread, enters Python. CallbackOf: whose callback it is.
//
// Thread-safety: all of it. A thread that takes the GIL while the interpreter ends is ended itself, which aborts the
// process where it is inside Kiln. So no callback enters Python after refuse_callbacks(), which the module's exit
// handler calls.
//
//   const InPython python;
//   if (!python) return 0;  // the interpreter ends

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

// Marks that this thread is in a function of Kiln, without the GIL. After refuse_calls() the constructor keeps every
// other thread until the process ends: what Kiln and drivers need may be destroyed below it.
class OutsidePython {
 public:
  OutsidePython() noexcept;
  OutsidePython(const OutsidePython&) = delete;
  OutsidePython& operator=(const OutsidePython&) = delete;
  ~OutsidePython();
};

// Lets only this thread enter functions of Kiln. REQUIRES: no callback is in Python: it might wait for one.
void refuse_calls() noexcept;
// Waits for the other threads that are in functions of Kiln, at most five seconds. REQUIRES: as await_callbacks().
void await_calls() noexcept;

// Keeps the counts of callbacks and calls right in a forked child. Called once.
void watch_forks() noexcept;

}  // namespace kiln::python
