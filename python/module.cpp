// kiln._kiln: the C interface for Python, by the limited C API of Python 3.11, so that one binary serves all later
// versions. This file has the module, and the functions of runtimes and caches; jobs.cpp has those of jobs.
//
// It has no policy: python/kiln/__init__.py is the interface for people. Handles are objects that own their object.
// Thread-safety: every function from any thread; the GIL is released in every call that may wait. Ownership: a job
// keeps the buffers that it was given until it is freed.
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>
#include <kiln.h>

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "handles.hpp"
#include "interpreter.hpp"
#include "module.hpp"

namespace kiln::python {
namespace {

PyObject* set_error(PyObject*, PyObject* type) {
  set_error_type(type);
  Py_RETURN_NONE;
}

// Called when the interpreter ends: from then on no thread of Kiln enters Python, and no other thread of Python enters
// Kiln.
PyObject* stop(PyObject*, PyObject*) {
  refuse_callbacks();  // a job ends when its `progress` is refused
  stop_jobs();
  waiting([] {
    await_callbacks();
    return true;
  });
  refuse_calls();
  stop_jobs();  // those that other threads have started since
  waiting([] {
    await_calls();
    return true;
  });
  Py_RETURN_NONE;
}

// Receives log lines on any thread. The pointer is a RuntimeHandle or CacheHandle.
template <class Handle>
void log_line(void* user, kiln_log_level level, const char* component, const char* message) {
  const InPython python;
  if (!python) return;
  const SavedError saved;
  auto* handle = static_cast<Handle*>(user);
  const Kept kept(handle->self);
  const Object log = Object::borrowed(handle->log.get());
  if (!log) return;
  const CallbackOf called(handle->self);
  const Object said(PyObject_CallFunction(log.get(), "iss", static_cast<int>(level), component, message));
  if (!said) PyErr_WriteUnraisable(log.get());
}

// config, directory, key_file: bytes or None; read_only; log: a callable or None; level; trace.
bool read_options(PyObject* arguments, kiln_cache_options& options, PyObject*& log) {
  int read_only = 0, level = 0, traced = 0;
  Py_ssize_t lengths[3] = {};
  options = kiln_cache_options_default();
  if (PyArg_ParseTuple(arguments, "z#z#z#pOip", &options.config, &lengths[0], &options.directory, &lengths[1],
                       &options.key_file, &lengths[2], &read_only, &log, &level, &traced) == 0) {
    return false;
  }
  const char* const paths[] = {options.config, options.directory, options.key_file};
  for (int at = 0; at < 3; ++at) {
    if (paths[at] != nullptr && std::strlen(paths[at]) != static_cast<std::size_t>(lengths[at])) {
      PyErr_SetString(PyExc_ValueError, "config, directory or key_file: the path contains a NUL character");
      return false;
    }
  }
  options.read_only = read_only != 0 ? 1 : 0;
  options.trace = traced != 0 ? 1 : 0;
  options.log_level = static_cast<kiln_log_level>(level);
  return true;
}

template <class Handle, class Open>
PyObject* opened(PyObject* arguments, const Open& open) {
  kiln_cache_options options;
  PyObject* log = nullptr;
  if (!read_options(arguments, options, log)) return nullptr;
  Object made = HandleType<Handle>::create();
  if (!made) return nullptr;
  Handle& handle = HandleType<Handle>::state(made.get());
  if (log != Py_None) {
    handle.log = Object::borrowed(log);
    options.log = log_line<Handle>;
    options.log_user = &handle;
  }
  kiln_status* failure = waiting([&] { return open(options, handle); });
  return failure != nullptr ? raise(failure) : made.release();
}

PyObject* open_runtime(PyObject*, PyObject* arguments) {
  return opened<RuntimeHandle>(arguments, [](const kiln_cache_options& options, RuntimeHandle& made) {
    return kiln_open(&options, &made.runtime);
  });
}

PyObject* open_cache(PyObject*, PyObject* arguments) {
  return opened<CacheHandle>(arguments, [](const kiln_cache_options& options, CacheHandle& made) {
    made.process = getpid();
    return kiln_cache_open(&options, &made.cache);
  });
}

// --- runtime and cache

PyObject* devices(PyObject*, PyObject* object) {
  auto* of = Runtimes::of(object);
  if (of == nullptr) return nullptr;
  char* text = nullptr;
  kiln_status* status = waiting([&] { return kiln_runtime_devices(of->runtime, &text); });
  return text_or_raise(status, text);
}

PyObject* metrics(PyObject*, PyObject* object) {
  auto* of = Runtimes::of(object);
  if (of == nullptr) return nullptr;
  char* text = nullptr;
  kiln_status* status = waiting([&] { return kiln_runtime_metrics(of->runtime, &text); });
  return text_or_raise(status, text);
}

PyObject* trace(PyObject*, PyObject* object) {
  auto* of = Runtimes::of(object);
  if (of == nullptr) return nullptr;
  char* text = nullptr;
  kiln_status* status = waiting([&] { return kiln_runtime_trace(of->runtime, &text); });
  return text_or_raise(status, text);
}

PyObject* warm(PyObject*, PyObject* arguments) {
  PyObject* object = nullptr;
  const char* device = nullptr;
  Py_ssize_t most = 0;
  if (PyArg_ParseTuple(arguments, "Osn", &object, &device, &most) == 0) return nullptr;
  if (most < 0) return PyErr_Format(PyExc_ValueError, "most: %zd, expected at least 0", most);
  auto* of = Runtimes::of(object);
  if (of == nullptr) return nullptr;
  std::size_t loaded = 0;
  kiln_status* status =
      waiting([&] { return kiln_runtime_warm(of->runtime, device, static_cast<std::size_t>(most), &loaded); });
  return status != nullptr ? raise(status) : PyLong_FromSize_t(loaded);
}

PyObject* explain(PyObject*, PyObject* arguments) {
  PyObject* object = nullptr;
  const char* which = nullptr;
  if (PyArg_ParseTuple(arguments, "Os", &object, &which) == 0) return nullptr;
  char* text = nullptr;
  kiln_status* status = nullptr;
  if (Caches::holds(object)) {
    auto* of = Caches::of(object);
    status = waiting([&] { return kiln_cache_explain(of->cache, which, &text); });
  } else {
    auto* of = Runtimes::of(object);
    if (of == nullptr) return nullptr;
    status = waiting([&] { return kiln_runtime_explain(of->runtime, which, &text); });
  }
  return text_or_raise(status, text);
}

PyObject* stats(PyObject*, PyObject* object) {
  kiln_cache_stats found;
  found.size = sizeof found;
  kiln_status* status = nullptr;
  if (Caches::holds(object)) {
    auto* of = Caches::of(object);
    status = waiting([&] { return kiln_cache_get_stats(of->cache, &found); });
  } else {
    auto* of = Runtimes::of(object);
    if (of == nullptr) return nullptr;
    status = waiting([&] { return kiln_runtime_get_stats(of->runtime, &found); });
  }
  if (status != nullptr) return raise(status);
  const std::pair<const char*, std::uint64_t> counts[] = {
      {"memory_hits", found.memory_hits},
      {"disk_hits", found.disk_hits},
      {"misses", found.misses},
      {"builds", found.builds},
      {"failed_builds", found.failed_builds},
      {"waits", found.waits},
      {"evictions", found.evictions},
      {"disk_evictions", found.disk_evictions},
      {"corrupt", found.corrupt},
      {"tampered", found.tampered},
      {"foreign", found.foreign},
      {"driver_changed", found.driver_changed},
      {"refused", found.refused},
      {"quarantined", found.quarantined},
      {"programs_in_memory", found.programs_in_memory},
      {"bytes_in_memory", found.bytes_in_memory},
      {"bytes_on_disk", found.bytes_on_disk},
      {"lease_waits", found.lease_waits},
      {"lease_takeovers", found.lease_takeovers},
      {"lease_timeouts", found.lease_timeouts},
      {"negative_hits", found.negative_hits},
      {"absent", found.absent},
      {"evicted", found.evicted},
      {"timed_out", found.timed_out},
  };
  Object all(PyDict_New());
  if (!all) return nullptr;
  for (const auto& [name, count] : counts) {
    const Object number(PyLong_FromUnsignedLongLong(count));
    if (!number || PyDict_SetItemString(all.get(), name, number.get()) != 0) return nullptr;
  }
  const Object saved(PyFloat_FromDouble(found.saved_ms));
  if (!saved || PyDict_SetItemString(all.get(), "saved_ms", saved.get()) != 0) return nullptr;
  return all.release();
}

PyMethodDef methods[] = {
    {"set_error", set_error, METH_O, nullptr},
    {"stop", stop, METH_NOARGS, nullptr},
    {"open", open_runtime, METH_VARARGS, nullptr},
    {"open_cache", open_cache, METH_VARARGS, nullptr},
    {"devices", devices, METH_O, nullptr},
    {"metrics", metrics, METH_O, nullptr},
    {"trace", trace, METH_O, nullptr},
    {"warm", warm, METH_VARARGS, nullptr},
    {"explain", explain, METH_VARARGS, nullptr},
    {"stats", stats, METH_O, nullptr},
    {"get", get, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

// Fills a module that is imported. The types are those of the process: they are made once, in the main interpreter,
// which lives as long as they do.
int fill(PyObject* module) {
  if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0) {
    PyErr_SetString(PyExc_ImportError,
                    "kiln: imported in a subinterpreter, expected the main interpreter of the process");
    return -1;
  }
  static bool made = false;
  if (!made) {
    if (!make_memory_type() || !Runtimes::make() || !Caches::make() || !Jobs::make()) return -1;
    watch_forks();
    made = true;
  }
  if (PyModule_AddFunctions(module, job_functions) != 0 || !add_memory_type(module)) return -1;
  return PyModule_AddStringConstant(module, "version", kiln_version());
}

PyModuleDef_Slot slots[] = {{Py_mod_exec, reinterpret_cast<void*>(fill)}, {0, nullptr}};

// In two phases: else Python would give a subinterpreter a copy of the main one's module, and not call `fill`.
PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_kiln", nullptr, 0, methods, slots, nullptr, nullptr, nullptr};

}  // namespace
}  // namespace kiln::python

PyMODINIT_FUNC PyInit__kiln() { return PyModuleDef_Init(&kiln::python::definition); }
