// kiln.Memory: tensor memory for Python, either its own, aligned as jobs need it, or that of a DLPack tensor. It
// exports the buffer protocol (PEP 3118) and DLPack.
#pragma once

#include <Python.h>
#include <kiln.h>

namespace kiln::python {

// 0: no type of Kiln's. format: as of the buffer protocol.
kiln_type type_of(const char* format, Py_ssize_t item_bytes) noexcept;
const char* supported_types() noexcept;  // for messages

// Both: false: an exception is set.
bool make_memory_type();  // once
bool add_memory_type(PyObject* module);

}  // namespace kiln::python
