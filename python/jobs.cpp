#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include "module.hpp"

#include <kiln.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <future>
#include <string_view>
#include <utility>
#include <vector>

#include "handles.hpp"
#include "interpreter.hpp"

namespace kiln::python {
namespace {

PyObject* job_create(PyObject*, PyObject* arguments) {
  PyObject* object = nullptr;
  const char* name = nullptr;
  if (PyArg_ParseTuple(arguments, "Os", &object, &name) == 0) return nullptr;
  auto* of = Runtimes::of(object);
  if (of == nullptr) return nullptr;
  Object made = Jobs::create();
  if (!made) return nullptr;
  JobHandle& job = Jobs::state(made.get());
  job.runtime = Object::borrowed(object);
  if (kiln_status* failure = kiln_job_create(of->runtime, name, &job.job)) return raise(failure);
  return made.release();
}

// set(job, what, values): device, repeat, timeout, verify.
PyObject* job_set(PyObject*, PyObject* arguments) {
  PyObject *object = nullptr, *value = nullptr;
  const char* what = nullptr;
  if (PyArg_ParseTuple(arguments, "OsO", &object, &what, &value) == 0) return nullptr;
  JobHandle* of = Jobs::of(object);
  if (of == nullptr) return nullptr;
  const std::string_view name(what);
  if (name == "device") {
    const char* text = value == Py_None ? nullptr : PyUnicode_AsUTF8AndSize(value, nullptr);
    if (text == nullptr && value != Py_None) return nullptr;
    return none_or_raise(waiting([&] { return kiln_job_device(of->job, text); }));
  }
  const unsigned long number = PyLong_AsUnsignedLong(value);
  if (PyErr_Occurred() != nullptr) return nullptr;
  if (number > UINT32_MAX)
    return PyErr_Format(PyExc_OverflowError, "%s: %lu, expected at most 2**32 - 1", what, number);
  const auto wanted = static_cast<std::uint32_t>(number);
  const auto setting = name == "repeat"    ? kiln_job_repeat
                       : name == "timeout" ? kiln_job_timeout
                       : name == "verify"  ? kiln_job_verify
                                           : nullptr;
  if (setting == nullptr) return PyErr_Format(PyExc_ValueError, "no setting '%s'", what);
  of->last_run = JobHandle::unknown;
  return none_or_raise(waiting([&] { return setting(of->job, wanted); }));
}

// toml(job, text): file names start in the working directory.
PyObject* job_toml(PyObject*, PyObject* arguments) {
  PyObject* object = nullptr;
  const char* text = nullptr;
  if (PyArg_ParseTuple(arguments, "Os", &object, &text) == 0) return nullptr;
  JobHandle* of = Jobs::of(object);
  return of == nullptr ? nullptr : none_or_raise(waiting([&] { return kiln_job_toml(of->job, text, nullptr); }));
}

// The text that the function of kiln.h gives of the job.
template <kiln_status* (*function)(kiln_job* job, char** text)>
PyObject* job_text(PyObject*, PyObject* object) {
  JobHandle* of = Jobs::of(object);
  if (of == nullptr) return nullptr;
  char* text = nullptr;
  kiln_status* status = waiting([&] { return function(of->job, &text); });
  return text_or_raise(status, text);
}

// in_callback() -> whether a `progress` or `log` calls this.
PyObject* in_callback(PyObject*, PyObject*) { return PyBool_FromLong(CallbackOf::any() ? 1 : 0); }

// waits_for_itself(job) -> whether the `progress` of the job, or the `log` of its runtime, calls this.
PyObject* waits_for_itself(PyObject*, PyObject* object) {
  const JobHandle* of = Jobs::of(object);
  if (of == nullptr) return nullptr;
  return PyBool_FromLong(CallbackOf::of(object) || CallbackOf::of(of->runtime.get()) ? 1 : 0);
}

int on_run(void* user, std::uint32_t done, std::uint32_t of) {
  const auto& run = *static_cast<JobRun*>(user);
  if (run.cancelled) return 0;
  const InPython python;
  if (!python || run.handle == nullptr) return 0;
  JobHandle* job = run.handle;
  const Kept kept(job->self);
  const Object progress = Object::borrowed(job->progress.get());
  if (!kept || !progress) return 0;  // the job is being freed
  const CallbackOf called(job->self);
  const Object said(PyObject_CallFunction(progress.get(), "II", done, of));
  if (said) return 1;
  job->raised.take();
  return 0;
}

PyObject* job_progress(PyObject*, PyObject* arguments) {
  PyObject *object = nullptr, *callable = nullptr;
  if (PyArg_ParseTuple(arguments, "OO", &object, &callable) == 0) return nullptr;
  JobHandle* of = Jobs::of(object);
  if (of == nullptr) return nullptr;
  const bool none = callable == Py_None;
  kiln_status* failure = waiting([&] { return kiln_job_progress(of->job, none ? nullptr : on_run, of->run.get()); });
  if (failure == nullptr) of->progress = none ? Object() : Object::borrowed(callable);
  return none_or_raise(failure);
}

// Raises what says that the array is not in C order.
void refuse_order(PyObject* object) {
  const Object view(PyMemoryView_FromObject(object));
  const Object shape(view ? PyObject_GetAttrString(view.get(), "shape") : nullptr);
  const Object strides(shape ? PyObject_GetAttrString(view.get(), "strides") : nullptr);
  if (!strides) return;
  PyErr_Format(
      PyExc_ValueError,
      "an array of shape %R with strides of %R bytes, expected one in C order, as numpy.ascontiguousarray() gives",
      shape.get(), strides.get());
}

// The buffer of an array that a job can use. false: an exception is set.
bool take_view(PyObject* object, bool writes, Py_buffer& view, kiln_type& type) {
  if (PyObject_GetBuffer(object, &view, PyBUF_RECORDS_RO | (writes ? PyBUF_WRITABLE : 0)) != 0) return false;
  const char* format = view.format == nullptr ? "B" : view.format;
  type = type_of(format, view.itemsize);
  if (type == static_cast<kiln_type>(0)) {
    PyErr_Format(PyExc_TypeError, "elements of format '%s', expected %s in the byte order of this machine", format,
                 supported_types());
  } else if (PyBuffer_IsContiguous(&view, 'C') == 0) {
    refuse_order(object);
  } else {
    return true;
  }
  PyBuffer_Release(&view);
  return false;
}

// The buffer and the tensor of an object. false: an exception is set.
bool take_tensor(PyObject* object, bool writes, Py_buffer& view, std::vector<std::int64_t>& shape,
                 kiln_tensor& tensor) {
  kiln_type type{};
  if (!take_view(object, writes, view, type)) return false;
  shape.assign(view.shape, view.shape + view.ndim);
  tensor = kiln_tensor_of(view.buf, type, static_cast<std::uint32_t>(view.ndim), shape.data());
  return true;
}

// span(array) -> (address, bytes, whether it is read-only). Raises if a job cannot use the array.
PyObject* span(PyObject*, PyObject* object) {
  Py_buffer view;
  kiln_type type{};
  if (!take_view(object, false, view, type)) return nullptr;
  PyObject* made = Py_BuildValue("KnN", static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(view.buf)),
                                 view.len, PyBool_FromLong(view.readonly));
  PyBuffer_Release(&view);
  return made;
}

// tensor(job, name, writes, array): the job holds the array from now on, and no longer an earlier one of the name.
PyObject* job_tensor(PyObject*, PyObject* arguments) {
  PyObject *object = nullptr, *array = nullptr;
  const char* name = nullptr;
  int writes = 0;
  if (PyArg_ParseTuple(arguments, "OspO", &object, &name, &writes, &array) == 0) return nullptr;
  JobHandle* of = Jobs::of(object);
  if (of == nullptr) return nullptr;
  std::vector<std::int64_t> shape;
  kiln_tensor tensor;
  Py_buffer view;
  if (!take_tensor(array, writes != 0, view, shape, tensor)) return nullptr;
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
  PyObject *object = nullptr, *terms = nullptr, *objects[4] = {};
  if (PyArg_ParseTuple(arguments, "OOOOOO", &object, &terms, &objects[0], &objects[1], &objects[2], &objects[3]) == 0) {
    return nullptr;
  }
  JobHandle* of = Jobs::of(object);
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

// Raises what the job's progress raised, else the status if it is a failure. Takes the status over.
PyObject* outcome(JobHandle& job, kiln_status* status) {
  if (!job.raised) return none_or_raise(status);
  kiln_status_free(status);
  job.raised.raise();
  return nullptr;
}

// Waits at most so long. Whether the job has ended; `status` is then its outcome.
bool ends_within(const JobHandle& job, std::uint32_t milliseconds, kiln_status*& status) {
  status = kiln_job_wait(job.job, milliseconds);
  if (kiln_status_code(status) != KILN_TIMEOUT) return true;
  kiln_status_free(std::exchange(status, nullptr));
  if (kiln_job_ended(job.job) == 0) return false;
  status = kiln_job_wait(job.job, 0);  // the job timed out by itself, or has just ended
  return true;
}

enum class Wait { ended, runs, interrupted };

// Ctrl-C cancels the job, waits for it, and raises KeyboardInterrupt. seconds: less than 0 for any time.
Wait wait_for(JobHandle& job, double seconds, kiln_status*& status) {
  constexpr double longest_step_ms = 20;  // how late Ctrl-C may be seen
  double left_ms = seconds < 0 ? 1e18 : seconds * 1e3;
  for (;;) {
    const double step_ms = std::min(left_ms, longest_step_ms);
    if (waiting([&] { return ends_within(job, static_cast<std::uint32_t>(step_ms), status); })) return Wait::ended;
    left_ms -= step_ms;
    if (left_ms <= 0) return Wait::runs;
    if (PyErr_CheckSignals() != 0) {
      job.cancel();
      kiln_status_free(waiting([&] { return kiln_job_wait(job.job, UINT32_MAX); }));
      return Wait::interrupted;
    }
  }
}

// run(job): on this thread if the last run was short, else on one of the runtime, so that Ctrl-C is seen.
PyObject* job_run(PyObject*, PyObject* object) {
  constexpr auto shortest = std::chrono::milliseconds(10);
  JobHandle* of = Jobs::of(object);
  if (of == nullptr) return nullptr;
  of->begin();
  const auto begun = std::chrono::steady_clock::now();
  kiln_status* status = nullptr;
  if (of->last_run < shortest) {
    status = waiting([&] { return kiln_job_run(of->job); });
  } else {
    status = waiting([&] { return kiln_job_start(of->job); });
    if (status == nullptr && wait_for(*of, -1, status) == Wait::interrupted) return nullptr;
  }
  of->last_run = std::chrono::steady_clock::now() - begun;
  return outcome(*of, status);
}

PyObject* job_start(PyObject*, PyObject* object) {
  JobHandle* of = Jobs::of(object);
  if (of == nullptr) return nullptr;
  of->begin();
  return none_or_raise(waiting([&] { return kiln_job_start(of->job); }));
}

// wait(job, seconds) -> whether it has ended.
PyObject* job_wait(PyObject*, PyObject* arguments) {
  PyObject* object = nullptr;
  double seconds = 0;
  if (PyArg_ParseTuple(arguments, "Od", &object, &seconds) == 0) return nullptr;
  JobHandle* of = Jobs::of(object);
  if (of == nullptr) return nullptr;
  kiln_status* status = nullptr;
  const Wait ended = wait_for(*of, seconds, status);
  kiln_status_free(status);
  return ended == Wait::interrupted ? nullptr : PyBool_FromLong(ended == Wait::ended ? 1 : 0);
}

// outcome(job) -> the exception that the run that has ended failed with, or None. The same until the next run.
PyObject* job_outcome(PyObject*, PyObject* object) {
  JobHandle* of = Jobs::of(object);
  if (of == nullptr) return nullptr;
  kiln_status* status = waiting([&] { return kiln_job_wait(of->job, 0); });
  if (of->raised.value() != nullptr) {
    kiln_status_free(status);
    return Object::borrowed(of->raised.value()).release();
  }
  if (PyObject* none = none_or_raise(status)) return none;
  Raised raised;
  raised.take();
  return raised.take_value().release();
}

PyObject* job_cancel(PyObject*, PyObject* object) {
  JobHandle* of = Jobs::of(object);
  if (of == nullptr) return nullptr;
  of->cancel();
  Py_RETURN_NONE;
}

// report(job) -> (device, variant, tier, runs, verified, wall, queue, build, upload, device, readback in ns, flops,
// error, bound)
PyObject* job_report(PyObject*, PyObject* object) {
  JobHandle* of = Jobs::of(object);
  if (of == nullptr) return nullptr;
  kiln_report report;
  report.size = sizeof report;
  if (kiln_status* failure = waiting([&] { return kiln_job_get_report(of->job, &report); })) return raise(failure);
  return Py_BuildValue("ssiIIKKKKKKdddK", report.device, report.variant, static_cast<int>(report.tier), report.runs,
                       report.verified, report.wall_ns, report.queue_ns, report.build_ns, report.upload_ns,
                       report.device_ns, report.readback_ns, report.flops, report.max_rel_error, report.error_bound,
                       report.copied_bytes);
}

struct Tuning {
  PyObject* progress = nullptr;  // a callable, or None
  Raised raised;                 // by `progress` or a signal handler
};

int on_progress(void* user, std::size_t done, std::size_t of, const char* best) {
  const InPython python;
  if (!python) return 0;
  auto& tuning = *static_cast<Tuning*>(user);
  if (tuning.raised) return 0;
  if (tuning.progress == Py_None) return 1;
  const Object said(
      PyObject_CallFunction(tuning.progress, "nns", static_cast<Py_ssize_t>(done), static_cast<Py_ssize_t>(of), best));
  if (said) return 1;
  tuning.raised.take();
  return 0;
}

// tune(job, device, budget in ms, progress or None) -> JSON. On a thread of its own, so that Ctrl-C is seen.
PyObject* job_tune(PyObject*, PyObject* arguments) {
  constexpr auto longest_step = std::chrono::milliseconds(20);  // how late Ctrl-C may be seen
  PyObject* object = nullptr;
  const char* device = nullptr;
  unsigned int budget = 0;
  Tuning tuning;
  if (PyArg_ParseTuple(arguments, "OsIO", &object, &device, &budget, &tuning.progress) == 0) return nullptr;
  JobHandle* of = Jobs::of(object);
  if (of == nullptr) return nullptr;
  char* json = nullptr;
  auto ended = std::async([&] { return kiln_job_tune(of->job, device, budget, on_progress, &tuning, &json); });
  while (waiting([&] { return ended.wait_for(longest_step); }) == std::future_status::timeout) {
    if (in_python(PyErr_CheckSignals) == 0) continue;
    tuning.raised.take();
    of->cancel();
    break;
  }
  kiln_status* status = waiting([&] { return ended.get(); });
  if (!tuning.raised) return text_or_raise(status, json);
  kiln_status_free(status);
  kiln_text_free(json);
  tuning.raised.raise();
  return nullptr;
}

}  // namespace

PyMethodDef job_functions[] = {
    {"job", job_create, METH_VARARGS, nullptr},
    {"set", job_set, METH_VARARGS, nullptr},
    {"toml", job_toml, METH_VARARGS, nullptr},
    {"tensor", job_tensor, METH_VARARGS, nullptr},
    {"tensors", job_text<kiln_job_tensors>, METH_O, nullptr},
    {"progress", job_progress, METH_VARARGS, nullptr},
    {"in_callback", in_callback, METH_NOARGS, nullptr},
    {"waits_for_itself", waits_for_itself, METH_O, nullptr},
    {"span", span, METH_O, nullptr},
    {"layer", job_layer, METH_VARARGS, nullptr},
    {"run", job_run, METH_O, nullptr},
    {"start", job_start, METH_O, nullptr},
    {"wait", job_wait, METH_VARARGS, nullptr},
    {"outcome", job_outcome, METH_O, nullptr},
    {"cancel", job_cancel, METH_O, nullptr},
    {"report", job_report, METH_O, nullptr},
    {"report_json", job_text<kiln_job_report_json>, METH_O, nullptr},
    {"tune", job_tune, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace kiln::python
