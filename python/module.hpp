// The types and functions of the module kiln._kiln.
//
// kiln.Memory: tensor memory for Python, either its own, aligned as jobs need it, or that of a DLPack tensor. It
// exports the buffer protocol (PEP 3118) and DLPack.
#pragma once

#include <Python.h>
#include <kiln.h>

#include <condition_variable>
#include <mutex>

namespace kiln::python {

// 0: no type of Kiln's. format: as of the buffer protocol.
kiln_type type_of(const char* format, Py_ssize_t item_bytes) noexcept;
const char* supported_types() noexcept;  // for messages

// Both: false: an exception is set.
bool make_memory_type();  // once
bool add_memory_type(PyObject* module);

// job_functions: the functions of kiln._kiln that describe a job, give it tensors, run it and report on it.
//
// Thread-safety: every function from any thread; the GIL is released in every call that may wait. Ownership: a job
// keeps the buffers that it was given until it is freed.

extern PyMethodDef job_functions[];  // the last one has no name

// The function get() of kiln._kiln: programs of a compiler that is a callable of Python.

// A build that a thread of the cache hands to the thread that called get(), which is the one that the compiler expects.
struct HandedBuild {
  std::mutex mutex;
  std::condition_variable changed;
  kiln_request* request = nullptr;  // set while the thread of the cache waits for the build
  bool done = false;
  bool abandoned = false;  // the caller was interrupted
  kiln_code code = KILN_UNAVAILABLE;
};

// get(cache, (api, device, driver), label, [(name, bytes)], build) -> (bytes, tier)
PyObject* get(PyObject* module, PyObject* arguments);

}  // namespace kiln::python
