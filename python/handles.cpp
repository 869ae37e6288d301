#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include "handles.hpp"

#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <set>
#include <utility>

#include "interpreter.hpp"
#include "module.hpp"

namespace kiln::python {
namespace {

PyObject* error_type = nullptr;  // kiln.Error; the module lives as long as the interpreter
std::set<JobHandle*> jobs;       // all that live; guarded by the GIL

// What a job handle owns.
struct OwnedJob {
  kiln_job* job;
  Object runtime;
  std::vector<Py_buffer> buffers;
  std::map<std::string, Py_buffer, std::less<>> tensors;
  std::unique_ptr<JobRun> run;
};
std::vector<OwnedJob> left_jobs;  // that `log` of their runtime freed; guarded by the GIL

void free_job(OwnedJob owned) {
  if (CallbackOf::of(owned.runtime.get())) {
    kiln_job_cancel(owned.job);
    left_jobs.push_back(std::move(owned));
    return;
  }
  waiting([&] {
    kiln_job_free(owned.job);
    return true;
  });
  in_python([&] {
    for (Py_buffer& buffer : owned.buffers) PyBuffer_Release(&buffer);
    for (auto& [name, buffer] : owned.tensors) PyBuffer_Release(&buffer);
  });
}

void free_left_jobs() {
  std::vector<OwnedJob> left;
  left.swap(left_jobs);
  for (OwnedJob& owned : left) free_job(std::move(owned));
}

}  // namespace

void set_error_type(PyObject* type) {
  Py_INCREF(type);
  Py_XDECREF(std::exchange(error_type, type));
}

PyObject* raise(kiln_status* status) {
  const char* message = kiln_status_message(status);
  const Object text(PyUnicode_DecodeUTF8(message, static_cast<Py_ssize_t>(std::strlen(message)), "replace"));
  const char* code = kiln_code_name(kiln_status_code(status));
  const auto make = [&] { return PyObject_CallFunction(error_type, "sO", code, text.get()); };
  const Object made(text ? in_python(make) : nullptr);
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

Kept::~Kept() {
  if (!object_ || Py_REFCNT(object_.get()) > 1) return;
  const auto give_up = [](void* object) {
    Py_DECREF(static_cast<PyObject*>(object));
    return 0;
  };
  PyObject* last = object_.release();
  static_cast<void>(Py_AddPendingCall(give_up, last));  // if it fails, the object lives on
}

RuntimeHandle::~RuntimeHandle() {
  waiting([this] {
    kiln_close(runtime);
    return true;
  });
}

CacheHandle::~CacheHandle() {
  waiting([this] {
    kiln_cache_close(cache);
    for (const HandedBuild* build : abandoned) delete build;
    return true;
  });
}

JobHandle::JobHandle() : process(getpid()) {
  run->handle = this;
  jobs.insert(this);
  free_left_jobs();
}

JobHandle::~JobHandle() {
  run->handle = nullptr;
  jobs.erase(this);
  free_job({job, std::move(runtime), std::move(buffers), std::move(tensors), std::move(run)});
  free_left_jobs();
}

int JobHandle::traverse(visitproc visit, void* argument) const {
  int end = visit_object(runtime.get(), visit, argument);
  if (end == 0) end = visit_object(progress.get(), visit, argument);
  if (end == 0) end = raised.traverse(visit, argument);
  for (const Py_buffer& buffer : buffers) {
    if (end == 0) end = visit_object(buffer.obj, visit, argument);
  }
  for (const auto& [name, buffer] : tensors) {
    if (end == 0) end = visit_object(buffer.obj, visit, argument);
  }
  return end;
}

void stop_jobs() {
  free_left_jobs();
  const int here = getpid();  // a forked child has none of the threads that run its parent's jobs
  std::vector<std::pair<kiln_job*, Object>> live;
  for (const JobHandle* job : jobs) {
    if (job->process == here && job->self != nullptr) live.emplace_back(job->job, Object::borrowed(job->self));
  }
  waiting([&] {
    for (const auto& [job, owner] : live) kiln_job_cancel(job);
    for (const auto& [job, owner] : live) kiln_status_free(kiln_job_wait(job, UINT32_MAX));
    return true;
  });
}

}  // namespace kiln::python
