// kiln._kiln: the C interface for Python, by the limited C API of Python 3.11, so that one binary serves all later
// versions.
//
// It has no policy: python/kiln/__init__.py is the interface for people. Handles are capsules that own their object.
// Thread-safety: every function from any thread; the GIL is released in every call that may wait. Ownership: a job
// keeps the buffers that it was given until it is freed.
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>
#include <kiln.h>

#include <map>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "memory.hpp"
#include "object.hpp"

namespace kiln::python {
namespace {

PyObject* error_type = nullptr;  // kiln.Error; the module lives as long as the interpreter

PyObject* set_error(PyObject*, PyObject* type) {
  Py_INCREF(type);
  Py_XDECREF(std::exchange(error_type, type));
  Py_RETURN_NONE;
}

// Raises kiln.Error, and takes the status over.
PyObject* raise(kiln_status* status) {
  const char* code = kiln_code_name(kiln_status_code(status));
  const Object made(PyObject_CallFunction(error_type, "ss", code, kiln_status_message(status)));
  kiln_status_free(status);
  if (made) PyErr_SetObject(error_type, made.get());
  return nullptr;
}

PyObject* none_or_raise(kiln_status* status) {
  if (status != nullptr) return raise(status);
  Py_RETURN_NONE;
}

PyObject* text_or_raise(kiln_status* status, char* text) {
  if (status != nullptr) return raise(status);
  PyObject* made = PyUnicode_FromString(text);
  kiln_text_free(text);
  return made;
}

// Runs `work` without the GIL.
template <class Work>
kiln_status* waiting(Work&& work) {
  PyThreadState* state = PyEval_SaveThread();
  kiln_status* status = work();
  PyEval_RestoreThread(state);
  return status;
}

// --- handles

template <class T>
T* handle(PyObject* capsule, const char* name) {
  return static_cast<T*>(PyCapsule_GetPointer(capsule, name));
}

constexpr const char *runtime_name = "kiln.runtime", *job_name = "kiln.job", *cache_name = "kiln.cache";

// Receives log lines on any thread. The pointer is a callable, or null.
void log_line(void* user, kiln_log_level level, const char* component, const char* message) {
  if (Py_IsInitialized() == 0) return;
  const PyGILState_STATE state = PyGILState_Ensure();
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  const Object said(
      PyObject_CallFunction(static_cast<PyObject*>(user), "iss", static_cast<int>(level), component, message));
  if (!said) PyErr_WriteUnraisable(static_cast<PyObject*>(user));
  PyErr_Restore(type, value, trace);
  PyGILState_Release(state);
}

struct RuntimeHandle {
  kiln_runtime* runtime = nullptr;
  Object log;

  ~RuntimeHandle() {
    PyThreadState* state = PyEval_SaveThread();
    kiln_close(runtime);
    PyEval_RestoreThread(state);
  }
};

struct CacheHandle {
  kiln_cache* cache = nullptr;
  Object log;

  ~CacheHandle() {
    PyThreadState* state = PyEval_SaveThread();
    kiln_cache_close(cache);
    PyEval_RestoreThread(state);
  }
};

struct JobHandle {
  kiln_job* job = nullptr;
  Object runtime;  // lives longer
  std::vector<Py_buffer> buffers;
  std::map<std::string, Py_buffer, std::less<>> tensors;  // of a description
  Object progress;                                        // a callable, or null
  Object raised, raised_value, raised_trace;              // by `progress`

  ~JobHandle() {
    PyThreadState* state = PyEval_SaveThread();
    kiln_job_free(job);
    PyEval_RestoreThread(state);
    for (Py_buffer& buffer : buffers) PyBuffer_Release(&buffer);
    for (auto& [name, buffer] : tensors) PyBuffer_Release(&buffer);
  }
};

template <class T>
PyObject* capsule_of(std::unique_ptr<T> owned, const char* name) {
  PyObject* capsule = PyCapsule_New(
      owned.get(), name, [](PyObject* of) { delete static_cast<T*>(PyCapsule_GetPointer(of, PyCapsule_GetName(of))); });
  if (capsule != nullptr) static_cast<void>(owned.release());
  return capsule;
}

// config, directory, key_file: text or None; read_only; log: a callable or None; level; trace.
bool read_options(PyObject* arguments, kiln_cache_options& options, PyObject*& log) {
  int read_only = 0, level = 0, traced = 0;
  options = kiln_cache_options_default();
  if (PyArg_ParseTuple(arguments, "zzzpOip", &options.config, &options.directory, &options.key_file, &read_only, &log,
                       &level, &traced) == 0) {
    return false;
  }
  options.read_only = read_only != 0 ? 1 : 0;
  options.trace = traced != 0 ? 1 : 0;
  options.log_level = static_cast<kiln_log_level>(level);
  if (log == Py_None) return true;
  options.log = log_line;
  options.log_user = log;
  return true;
}

template <class Handle, class Open>
PyObject* opened(PyObject* arguments, const char* name, const Open& open) {
  kiln_cache_options options;
  PyObject* log = nullptr;
  if (!read_options(arguments, options, log)) return nullptr;
  auto made = std::make_unique<Handle>();
  if (log != Py_None) made->log = Object::borrowed(log);
  if (kiln_status* failure = waiting([&] { return open(options, *made); })) return raise(failure);
  return capsule_of(std::move(made), name);
}

PyObject* open_runtime(PyObject*, PyObject* arguments) {
  return opened<RuntimeHandle>(arguments, runtime_name, [](const kiln_cache_options& options, RuntimeHandle& made) {
    return kiln_open(&options, &made.runtime);
  });
}

PyObject* open_cache(PyObject*, PyObject* arguments) {
  return opened<CacheHandle>(arguments, cache_name, [](const kiln_cache_options& options, CacheHandle& made) {
    return kiln_cache_open(&options, &made.cache);
  });
}

// --- runtime and cache

PyObject* devices(PyObject*, PyObject* capsule) {
  auto* of = handle<RuntimeHandle>(capsule, runtime_name);
  if (of == nullptr) return nullptr;
  char* text = nullptr;
  kiln_status* status = waiting([&] { return kiln_runtime_devices(of->runtime, &text); });
  return text_or_raise(status, text);
}

PyObject* metrics(PyObject*, PyObject* capsule) {
  auto* of = handle<RuntimeHandle>(capsule, runtime_name);
  if (of == nullptr) return nullptr;
  char* text = nullptr;
  kiln_status* status = waiting([&] { return kiln_runtime_metrics(of->runtime, &text); });
  return text_or_raise(status, text);
}

PyObject* trace(PyObject*, PyObject* capsule) {
  auto* of = handle<RuntimeHandle>(capsule, runtime_name);
  if (of == nullptr) return nullptr;
  char* text = nullptr;
  kiln_status* status = waiting([&] { return kiln_runtime_trace(of->runtime, &text); });
  return text_or_raise(status, text);
}

PyObject* warm(PyObject*, PyObject* arguments) {
  PyObject* capsule = nullptr;
  const char* device = nullptr;
  Py_ssize_t most = 0;
  if (PyArg_ParseTuple(arguments, "Osn", &capsule, &device, &most) == 0) return nullptr;
  auto* of = handle<RuntimeHandle>(capsule, runtime_name);
  if (of == nullptr) return nullptr;
  std::size_t loaded = 0;
  kiln_status* status =
      waiting([&] { return kiln_runtime_warm(of->runtime, device, static_cast<std::size_t>(most), &loaded); });
  return status != nullptr ? raise(status) : PyLong_FromSize_t(loaded);
}

PyObject* explain(PyObject*, PyObject* arguments) {
  PyObject* capsule = nullptr;
  const char* which = nullptr;
  if (PyArg_ParseTuple(arguments, "Os", &capsule, &which) == 0) return nullptr;
  char* text = nullptr;
  kiln_status* status = nullptr;
  if (PyCapsule_IsValid(capsule, cache_name) != 0) {
    auto* of = handle<CacheHandle>(capsule, cache_name);
    status = waiting([&] { return kiln_cache_explain(of->cache, which, &text); });
  } else {
    auto* of = handle<RuntimeHandle>(capsule, runtime_name);
    if (of == nullptr) return nullptr;
    status = waiting([&] { return kiln_runtime_explain(of->runtime, which, &text); });
  }
  return text_or_raise(status, text);
}

PyObject* stats(PyObject*, PyObject* capsule) {
  kiln_cache_stats found;
  found.size = sizeof found;
  kiln_status* status = nullptr;
  if (PyCapsule_IsValid(capsule, cache_name) != 0) {
    auto* of = handle<CacheHandle>(capsule, cache_name);
    status = waiting([&] { return kiln_cache_get_stats(of->cache, &found); });
  } else {
    auto* of = handle<RuntimeHandle>(capsule, runtime_name);
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

// --- bring your own compiler

// One call of get(): the callable, and what it raised. The exception is the caller's own; others that wait get its
// text.
struct BuildCall {
  PyObject* build = nullptr;
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
};

kiln_code on_build(void* user, kiln_request* request) {
  auto& call = *static_cast<BuildCall*>(user);
  const PyGILState_STATE state = PyGILState_Ensure();
  kiln_code code = KILN_UNAVAILABLE;
  {
    const Object made(PyObject_CallNoArgs(call.build));
    Py_buffer view;
    if (made && PyObject_GetBuffer(made.get(), &view, PyBUF_SIMPLE) == 0) {
      if (kiln_request_set_bytes(request, view.buf, static_cast<std::size_t>(view.len)) != 0) code = KILN_OK;
      PyBuffer_Release(&view);
    } else {
      PyErr_Fetch(&call.type, &call.value, &call.trace);
      const Object text(call.value == nullptr ? nullptr : PyObject_Str(call.value));
      const Object bytes(text ? PyUnicode_AsUTF8String(text.get()) : nullptr);
      if (bytes) kiln_request_set_message(request, PyBytes_AsString(bytes.get()));
      PyErr_Clear();
    }
  }
  PyGILState_Release(state);
  return code;
}

// get(cache, (api, device, driver), label, [(name, bytes)], build) -> (bytes, tier)
PyObject* get(PyObject*, PyObject* arguments) {
  PyObject *capsule = nullptr, *fields = nullptr;
  const char *api = nullptr, *device = nullptr, *driver = nullptr, *label = nullptr;
  BuildCall call;
  if (PyArg_ParseTuple(arguments, "O(sss)sOO", &capsule, &api, &device, &driver, &label, &fields, &call.build) == 0) {
    return nullptr;
  }
  auto* of = handle<CacheHandle>(capsule, cache_name);
  if (of == nullptr) return nullptr;
  const kiln_identity identity = kiln_identity_of(api, device, driver);
  kiln_key_builder* builder = nullptr;
  if (kiln_status* failure = kiln_key_builder_create(of->cache, &identity, label, &builder)) return raise(failure);
  const std::unique_ptr<kiln_key_builder, void (*)(kiln_key_builder*)> owned(builder, kiln_key_builder_free);
  const Py_ssize_t count = PySequence_Size(fields);
  if (count < 0) return nullptr;
  for (Py_ssize_t at = 0; at < count; ++at) {
    const Object field(PySequence_GetItem(fields, at));
    const char *name = nullptr, *bytes = nullptr;
    Py_ssize_t length = 0;
    if (!field || PyArg_ParseTuple(field.get(), "sy#", &name, &bytes, &length) == 0) return nullptr;
    kiln_status* failure = kiln_key_builder_bytes(builder, name, bytes, static_cast<std::size_t>(length));
    if (failure != nullptr) return raise(failure);
  }
  kiln_key* key = nullptr;
  if (kiln_status* failure = kiln_key_builder_finish(builder, &key)) return raise(failure);
  kiln_compiler compiler = kiln_compiler_default();
  compiler.user = &call;
  compiler.build = on_build;
  kiln_program* program = nullptr;
  kiln_status* failure = waiting([&] { return kiln_cache_get_or_build(of->cache, key, &compiler, &program); });
  kiln_key_free(key);
  if (call.type != nullptr) {  // the caller's own exception, as it was raised
    kiln_status_free(failure);
    kiln_program_free(program);
    PyErr_Restore(call.type, call.value, call.trace);
    return nullptr;
  }
  if (failure != nullptr) return raise(failure);
  std::size_t length = 0;
  const auto* bytes = static_cast<const char*>(kiln_program_bytes(program, &length));
  PyObject* made =
      Py_BuildValue("y#i", bytes, static_cast<Py_ssize_t>(length), static_cast<int>(kiln_program_tier(program)));
  kiln_program_free(program);
  return made;
}

// --- jobs

JobHandle* job_of(PyObject* capsule) { return handle<JobHandle>(capsule, job_name); }

PyObject* job_create(PyObject*, PyObject* arguments) {
  PyObject* capsule = nullptr;
  const char* name = nullptr;
  if (PyArg_ParseTuple(arguments, "Os", &capsule, &name) == 0) return nullptr;
  auto* of = handle<RuntimeHandle>(capsule, runtime_name);
  if (of == nullptr) return nullptr;
  auto made = std::make_unique<JobHandle>();
  made->runtime = Object::borrowed(capsule);
  if (kiln_status* failure = kiln_job_create(of->runtime, name, &made->job)) return raise(failure);
  return capsule_of(std::move(made), job_name);
}

// set(job, what, values): device, repeat, timeout, verify.
PyObject* job_set(PyObject*, PyObject* arguments) {
  PyObject *capsule = nullptr, *value = nullptr;
  const char* what = nullptr;
  if (PyArg_ParseTuple(arguments, "OsO", &capsule, &what, &value) == 0) return nullptr;
  JobHandle* of = job_of(capsule);
  if (of == nullptr) return nullptr;
  const std::string_view name(what);
  if (name == "device") {
    const char* text = value == Py_None ? nullptr : PyUnicode_AsUTF8AndSize(value, nullptr);
    return text == nullptr && value != Py_None ? nullptr : none_or_raise(kiln_job_device(of->job, text));
  }
  const unsigned long number = PyLong_AsUnsignedLong(value);
  if (PyErr_Occurred() != nullptr) return nullptr;
  if (number > UINT32_MAX) return PyErr_Format(PyExc_OverflowError, "%s: %lu, expected at most 2**32 - 1", what, number);
  const auto wanted = static_cast<std::uint32_t>(number);
  if (name == "repeat") return none_or_raise(kiln_job_repeat(of->job, wanted));
  if (name == "timeout") return none_or_raise(kiln_job_timeout(of->job, wanted));
  if (name == "verify") return none_or_raise(kiln_job_verify(of->job, wanted));
  return PyErr_Format(PyExc_ValueError, "no setting '%s'", what);
}

// toml(job, text): file names start in the working directory.
PyObject* job_toml(PyObject*, PyObject* arguments) {
  PyObject* capsule = nullptr;
  const char* text = nullptr;
  if (PyArg_ParseTuple(arguments, "Os", &capsule, &text) == 0) return nullptr;
  JobHandle* of = job_of(capsule);
  return of == nullptr ? nullptr : none_or_raise(kiln_job_toml(of->job, text, nullptr));
}

PyObject* job_tensors(PyObject*, PyObject* capsule) {
  JobHandle* of = job_of(capsule);
  if (of == nullptr) return nullptr;
  char* text = nullptr;
  kiln_status* status = waiting([&] { return kiln_job_tensors(of->job, &text); });
  return text_or_raise(status, text);
}

int on_run(void* user, std::uint32_t done, std::uint32_t of) {
  auto* job = static_cast<JobHandle*>(user);
  const PyGILState_STATE state = PyGILState_Ensure();
  const Object said(PyObject_CallFunction(job->progress.get(), "II", done, of));
  const bool go_on = static_cast<bool>(said);
  if (!go_on) {
    PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
    PyErr_Fetch(&type, &value, &trace);
    job->raised = Object(type), job->raised_value = Object(value), job->raised_trace = Object(trace);
  }
  PyGILState_Release(state);
  return go_on ? 1 : 0;
}

PyObject* job_progress(PyObject*, PyObject* arguments) {
  PyObject *capsule = nullptr, *callable = nullptr;
  if (PyArg_ParseTuple(arguments, "OO", &capsule, &callable) == 0) return nullptr;
  JobHandle* of = job_of(capsule);
  if (of == nullptr) return nullptr;
  const bool none = callable == Py_None;
  kiln_status* failure = kiln_job_progress(of->job, none ? nullptr : on_run, of);
  if (failure == nullptr) of->progress = none ? Object() : Object::borrowed(callable);
  return none_or_raise(failure);
}

// The buffer and the tensor of an object. false: an exception is set.
bool take_tensor(PyObject* object, bool writes, Py_buffer& view, std::vector<std::int64_t>& shape, kiln_tensor& tensor) {
  const int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (writes ? PyBUF_WRITABLE : 0);
  if (PyObject_GetBuffer(object, &view, flags) != 0) return false;
  const kiln_type type = type_of(view.format == nullptr ? "B" : view.format, view.itemsize);
  if (type == static_cast<kiln_type>(0)) {
    PyErr_Format(PyExc_TypeError, "elements of format '%s', expected %s", view.format == nullptr ? "B" : view.format,
                 supported_types());
    PyBuffer_Release(&view);
    return false;
  }
  shape.assign(view.shape, view.shape + view.ndim);
  tensor = kiln_tensor_of(view.buf, type, static_cast<std::uint32_t>(view.ndim), shape.data());
  return true;
}

// tensor(job, name, writes, array): the job holds the array from now on, and no longer an earlier one of the name.
PyObject* job_tensor(PyObject*, PyObject* arguments) {
  PyObject *capsule = nullptr, *object = nullptr;
  const char* name = nullptr;
  int writes = 0;
  if (PyArg_ParseTuple(arguments, "OspO", &capsule, &name, &writes, &object) == 0) return nullptr;
  JobHandle* of = job_of(capsule);
  if (of == nullptr) return nullptr;
  std::vector<std::int64_t> shape;
  kiln_tensor tensor;
  Py_buffer view;
  if (!take_tensor(object, writes != 0, view, shape, tensor)) return nullptr;
  if (kiln_status* failure = waiting([&] { return kiln_job_tensor(of->job, name, &tensor); })) {
    PyBuffer_Release(&view);
    return raise(failure);
  }
  const auto [at, is_new] = of->tensors.try_emplace(name, view);
  if (!is_new) {
    PyBuffer_Release(&at->second);
    at->second = view;
  }
  Py_RETURN_NONE;
}

// layer(job, (stride_y, …, groups, relu), input, weights, bias or None, output); gemm(job, relu, a, b, bias or None,
// output)
PyObject* job_layer(PyObject*, PyObject* arguments) {
  PyObject *capsule = nullptr, *terms = nullptr, *objects[4] = {};
  if (PyArg_ParseTuple(arguments, "OOOOOO", &capsule, &terms, &objects[0], &objects[1], &objects[2], &objects[3]) ==
      0) {
    return nullptr;
  }
  JobHandle* of = job_of(capsule);
  if (of == nullptr) return nullptr;
  std::vector<std::int64_t> shapes[4];
  kiln_tensor tensors[4];
  for (std::size_t at = 0; at < 4; ++at) {
    if (objects[at] == Py_None) continue;
    Py_buffer view;
    if (!take_tensor(objects[at], at == 3, view, shapes[at], tensors[at])) return nullptr;
    of->buffers.push_back(view);
  }
  const kiln_tensor* bias = objects[2] == Py_None ? nullptr : &tensors[2];
  if (PyTuple_Size(terms) == 1) {
    unsigned int relu = 0;
    if (PyArg_ParseTuple(terms, "I", &relu) == 0) return nullptr;
    return none_or_raise(
        waiting([&] { return kiln_job_gemm(of->job, &tensors[0], &tensors[1], bias, relu, &tensors[3]); }));
  }
  long long numbers[7] = {};
  unsigned int relu = 0;
  if (PyArg_ParseTuple(terms, "LLLLLLLI", &numbers[0], &numbers[1], &numbers[2], &numbers[3], &numbers[4], &numbers[5],
                       &numbers[6], &relu) == 0) {
    return nullptr;
  }
  kiln_conv2d conv{};
  conv.size = sizeof conv;
  conv.stride_y = numbers[0], conv.stride_x = numbers[1], conv.pad_y = numbers[2], conv.pad_x = numbers[3];
  conv.dilation_y = numbers[4], conv.dilation_x = numbers[5], conv.groups = numbers[6], conv.relu = relu;
  return none_or_raise(
      waiting([&] { return kiln_job_conv2d(of->job, &conv, &tensors[0], &tensors[1], bias, &tensors[3]); }));
}

// Raises what the job's progress raised, else the status. REQUIRES: one of them.
PyObject* raise_of(JobHandle& job, kiln_status* status) {
  if (!job.raised) return raise(status);
  kiln_status_free(status);
  PyErr_Restore(job.raised.release(), job.raised_value.release(), job.raised_trace.release());
  return nullptr;
}

PyObject* job_run(PyObject*, PyObject* capsule) {
  JobHandle* of = job_of(capsule);
  if (of == nullptr) return nullptr;
  kiln_status* failure = waiting([&] { return kiln_job_run(of->job); });
  if (failure != nullptr || of->raised) return raise_of(*of, failure);
  Py_RETURN_NONE;
}

PyObject* job_start(PyObject*, PyObject* capsule) {
  JobHandle* of = job_of(capsule);
  return of == nullptr ? nullptr : none_or_raise(kiln_job_start(of->job));
}

// wait(job, seconds) -> whether it has finished. Ctrl-C cancels the job, waits for it, and raises KeyboardInterrupt.
PyObject* job_wait(PyObject*, PyObject* arguments) {
  PyObject* capsule = nullptr;
  double seconds = 0;
  if (PyArg_ParseTuple(arguments, "Od", &capsule, &seconds) == 0) return nullptr;
  JobHandle* of = job_of(capsule);
  if (of == nullptr) return nullptr;
  double left_ms = seconds < 0 ? 1e18 : seconds * 1e3;
  for (;;) {
    const auto step = static_cast<std::uint32_t>(left_ms < 20 ? left_ms : 20);  // how late Ctrl-C may be seen
    kiln_status* status = waiting([&] { return kiln_job_wait(of->job, step); });
    // A job that timed out by itself has the same code. It has a report, as has one that has just finished.
    bool runs = kiln_status_code(status) == KILN_TIMEOUT;
    if (runs) {
      kiln_report report;
      report.size = sizeof report;
      kiln_status* unfinished = kiln_job_get_report(of->job, &report);
      runs = unfinished != nullptr;
      kiln_status_free(unfinished);
      if (!runs) {
        kiln_status_free(status);
        status = kiln_job_wait(of->job, 0);
      }
    }
    if (!runs) {
      if (status != nullptr || of->raised) return raise_of(*of, status);
      Py_RETURN_TRUE;
    }
    kiln_status_free(status);
    if (PyErr_CheckSignals() != 0) {
      kiln_job_cancel(of->job);
      kiln_status_free(waiting([&] { return kiln_job_wait(of->job, UINT32_MAX); }));
      return nullptr;
    }
    left_ms -= step;
    if (left_ms <= 0) Py_RETURN_FALSE;
  }
}

PyObject* job_cancel(PyObject*, PyObject* capsule) {
  JobHandle* of = job_of(capsule);
  if (of == nullptr) return nullptr;
  kiln_job_cancel(of->job);
  Py_RETURN_NONE;
}

// report(job) -> (device, variant, tier, runs, verified, wall, queue, build, upload, device, readback in ns, flops,
// error, bound)
PyObject* job_report(PyObject*, PyObject* capsule) {
  JobHandle* of = job_of(capsule);
  if (of == nullptr) return nullptr;
  kiln_report report;
  report.size = sizeof report;
  if (kiln_status* failure = kiln_job_get_report(of->job, &report)) return raise(failure);
  return Py_BuildValue("ssiIIKKKKKKdddK", report.device, report.variant, static_cast<int>(report.tier), report.runs,
                       report.verified, report.wall_ns, report.queue_ns, report.build_ns, report.upload_ns,
                       report.device_ns, report.readback_ns, report.flops, report.max_rel_error, report.error_bound,
                       report.copied_bytes);
}

PyObject* job_report_json(PyObject*, PyObject* capsule) {
  JobHandle* of = job_of(capsule);
  if (of == nullptr) return nullptr;
  char* text = nullptr;
  kiln_status* status = kiln_job_report_json(of->job, &text);
  return text_or_raise(status, text);
}

int on_progress(void* user, std::size_t done, std::size_t of, const char* best) {
  const PyGILState_STATE state = PyGILState_Ensure();
  int go_on = PyErr_Occurred() == nullptr && PyErr_CheckSignals() == 0 ? 1 : 0;
  if (go_on != 0 && user != nullptr) {
    const Object said(PyObject_CallFunction(static_cast<PyObject*>(user), "nns", static_cast<Py_ssize_t>(done),
                                            static_cast<Py_ssize_t>(of), best));
    go_on = said ? 1 : 0;
  }
  PyGILState_Release(state);
  return go_on;
}

PyObject* job_tune(PyObject*, PyObject* arguments) {
  PyObject *capsule = nullptr, *progress = nullptr;
  const char* device = nullptr;
  unsigned int budget = 0;
  if (PyArg_ParseTuple(arguments, "OsIO", &capsule, &device, &budget, &progress) == 0) return nullptr;
  JobHandle* of = job_of(capsule);
  if (of == nullptr) return nullptr;
  char* json = nullptr;
  void* user = progress == Py_None ? nullptr : progress;
  kiln_status* status = waiting([&] { return kiln_job_tune(of->job, device, budget, on_progress, user, &json); });
  if (PyErr_Occurred() != nullptr) {  // of the callback, which ran on this thread
    kiln_status_free(status);
    kiln_text_free(json);
    return nullptr;
  }
  return text_or_raise(status, json);
}

PyMethodDef methods[] = {
    {"set_error", set_error, METH_O, nullptr},
    {"open", open_runtime, METH_VARARGS, nullptr},
    {"open_cache", open_cache, METH_VARARGS, nullptr},
    {"devices", devices, METH_O, nullptr},
    {"metrics", metrics, METH_O, nullptr},
    {"trace", trace, METH_O, nullptr},
    {"warm", warm, METH_VARARGS, nullptr},
    {"explain", explain, METH_VARARGS, nullptr},
    {"stats", stats, METH_O, nullptr},
    {"get", get, METH_VARARGS, nullptr},
    {"job", job_create, METH_VARARGS, nullptr},
    {"set", job_set, METH_VARARGS, nullptr},
    {"toml", job_toml, METH_VARARGS, nullptr},
    {"tensor", job_tensor, METH_VARARGS, nullptr},
    {"tensors", job_tensors, METH_O, nullptr},
    {"progress", job_progress, METH_VARARGS, nullptr},
    {"layer", job_layer, METH_VARARGS, nullptr},
    {"run", job_run, METH_O, nullptr},
    {"start", job_start, METH_O, nullptr},
    {"wait", job_wait, METH_VARARGS, nullptr},
    {"cancel", job_cancel, METH_O, nullptr},
    {"report", job_report, METH_O, nullptr},
    {"report_json", job_report_json, METH_O, nullptr},
    {"tune", job_tune, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_kiln", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};

}  // namespace
}  // namespace kiln::python

PyMODINIT_FUNC PyInit__kiln() {
  using namespace kiln::python;
  Object module(PyModule_Create(&definition));
  if (!module) return nullptr;
  if (!add_memory_type(module.get())) return nullptr;
  if (PyModule_AddStringConstant(module.get(), "version", kiln_version()) != 0) return nullptr;
  return module.release();
}
