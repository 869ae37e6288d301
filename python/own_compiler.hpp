// The function get() of kiln._kiln: programs of a compiler that is a callable of Python.
#pragma once

#include <Python.h>
#include <kiln.h>

#include <condition_variable>
#include <mutex>

namespace kiln::python {

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
