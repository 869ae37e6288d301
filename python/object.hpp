// Object: owns one reference to a Python object.
//
// Thread-safety: REQUIRES the GIL. Ownership: its own.
#pragma once

#include <Python.h>

#include <utility>

namespace kiln::python {

class Object {
 public:
  Object() noexcept = default;
  explicit Object(PyObject* owned) noexcept : object_(owned) {}
  Object(Object&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Object& operator=(Object&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Object() { Py_XDECREF(object_); }

  static Object borrowed(PyObject* object) noexcept {
    Py_XINCREF(object);
    return Object(object);
  }
  PyObject* get() const noexcept { return object_; }
  PyObject* release() noexcept { return std::exchange(object_, nullptr); }
  explicit operator bool() const noexcept { return object_ != nullptr; }

 private:
  PyObject* object_ = nullptr;
};

}  // namespace kiln::python
