// job_functions: the functions of kiln._kiln that describe a job, give it tensors, run it and report on it.
//
// Thread-safety: every function from any thread; the GIL is released in every call that may wait. Ownership: a job
// keeps the buffers that it was given until it is freed.
#pragma once

#include <Python.h>

namespace kiln::python {

extern PyMethodDef job_functions[];  // the last one has no name

}  // namespace kiln::python
