// The objects behind kiln.Runtime, kiln.Cache and kiln.Job: types of Python that own an object of the C interface.
//
// Thread-safety: REQUIRES the GIL, which is released while an object is closed. They take part in garbage collection,
// since a callable that they hold may refer back to them.
#pragma once

#include <Python.h>
#include <kiln.h>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <vector>

#include "interpreter.hpp"

namespace kiln::python {

// Sets the type of kiln.Error.
void set_error_type(PyObject* type);
// Raises kiln.Error, and takes the status over. Returns null.
PyObject* raise(kiln_status* status);
PyObject* none_or_raise(kiln_status* status);
PyObject* text_or_raise(kiln_status* status, char* text);

// Runs `work` without the GIL.
template <class Work>
std::invoke_result_t<Work> waiting(Work&& work) {
  PyThreadState* state = PyEval_SaveThread();
  auto result = [&] {
    const OutsidePython outside;
    return work();
  }();
  in_python([state] { PyEval_RestoreThread(state); });
  return result;
}

// Keeps the object of a handle while a callback of it is in Python. Its last reference is given up on the main thread:
// a thread of the object that frees it would wait for itself.
class Kept {
 public:
  explicit Kept(PyObject* self) noexcept : object_(Object::borrowed(self)) {}
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;
  ~Kept();
  explicit operator bool() const noexcept { return static_cast<bool>(object_); }

 private:
  Object object_;
};

struct RuntimeHandle {
  static constexpr const char *type_name = "kiln._kiln.RuntimeHandle", *what = "runtime";
  PyObject* self = nullptr;  // the object that holds this; null: it is being freed
  kiln_runtime* runtime = nullptr;
  Object log;  // a callable, or null

  ~RuntimeHandle();
  int traverse(visitproc visit, void* argument) const { return visit_object(log.get(), visit, argument); }
  void clear() noexcept { log.clear(); }
};

struct HandedBuild;  // own_compiler.cpp

struct CacheHandle {
  static constexpr const char *type_name = "kiln._kiln.CacheHandle", *what = "cache";
  PyObject* self = nullptr;  // the object that holds this; null: it is being freed
  kiln_cache* cache = nullptr;
  Object log;
  int process = 0;                      // that opened it: a forked child has none of its threads
  std::vector<HandedBuild*> abandoned;  // their callers were interrupted; a thread of the cache may use them still

  ~CacheHandle();
  int traverse(visitproc visit, void* argument) const { return visit_object(log.get(), visit, argument); }
  void clear() noexcept { log.clear(); }
};

struct JobHandle;

// What the thread of a run has of its job. It lives as long as the kiln_job, which may be longer than the handle does.
struct JobRun {
  JobHandle* handle = nullptr;         // null: it is being freed, or was; guarded by the GIL
  std::atomic<bool> cancelled{false};  // `progress` is not called again
};

struct JobHandle {
  static constexpr const char *type_name = "kiln._kiln.JobHandle", *what = "job";
  PyObject* self = nullptr;  // the object that holds this; null: it is being freed
  static constexpr std::chrono::nanoseconds unknown = std::chrono::nanoseconds::max();
  kiln_job* job = nullptr;
  int process = 0;                                        // that made it
  Object runtime;                                         // lives longer
  std::vector<Py_buffer> buffers;                         // of a layer
  std::map<std::string, Py_buffer, std::less<>> tensors;  // of a description
  Object progress;                                        // a callable, or null
  Raised raised;                                          // by `progress`
  std::chrono::nanoseconds last_run = unknown;
  std::unique_ptr<JobRun> run = std::make_unique<JobRun>();

  JobHandle();
  // Where `log` of the runtime frees the job, it is cancelled, and freed with the next job: its run may wait for `log`,
  // and uses the buffers until then.
  ~JobHandle();
  int traverse(visitproc visit, void* argument) const;
  // Before each run.
  void begin() noexcept {
    raised.clear();
    run->cancelled = false;
  }
  void cancel() noexcept {
    run->cancelled = true;
    kiln_job_cancel(job);
  }
  // The runtime stays: it must live longer than the job.
  void clear() noexcept { progress.clear(), raised.clear(); }
};

// Cancels the jobs that run, and waits for them.
void stop_jobs();

// The type of Python whose objects hold a State.
template <class State>
class HandleType {
 public:
  // false: an exception is set.
  static bool make() {
    PyType_Slot slots[] = {
        {Py_tp_dealloc, slot(destroy)}, {Py_tp_traverse, slot(traverse)}, {Py_tp_clear, slot(clear)}, {0, nullptr}};
    PyType_Spec spec = {State::type_name, sizeof(Instance), 0,
                        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_HAVE_GC, slots};
    type_ = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
    return type_ != nullptr;
  }

  static Object create() {
    const auto allocate = reinterpret_cast<allocfunc>(PyType_GetSlot(type_, Py_tp_alloc));
    Object made(allocate(type_, 0));
    if (!made) return made;
    new (&instance(made.get()).state) State();
    state(made.get()).self = made.get();
    return made;
  }

  static bool holds(PyObject* object) noexcept { return Py_TYPE(object) == type_; }

  // REQUIRES: holds(object).
  static State& state(PyObject* object) noexcept { return instance(object).state; }

  // Null: an exception is set.
  static State* of(PyObject* object) {
    if (holds(object)) return &state(object);
    if (object == Py_None) {
      PyErr_SetString(PyExc_ValueError, "the runtime is closed");
    } else {
      PyErr_Format(PyExc_TypeError, "found %R, expected a %s", object, State::what);
    }
    return nullptr;
  }

 private:
  struct Instance {
    PyObject_HEAD State state;
  };

  static Instance& instance(PyObject* object) noexcept { return *reinterpret_cast<Instance*>(object); }

  template <class Function>
  static void* slot(Function* function) noexcept {
    return reinterpret_cast<void*>(function);
  }

  static int traverse(PyObject* self, visitproc visit, void* argument) {
    const int end = visit(reinterpret_cast<PyObject*>(Py_TYPE(self)), argument);
    return end != 0 ? end : state(self).traverse(visit, argument);
  }

  static int clear(PyObject* self) {
    state(self).clear();
    return 0;
  }

  static void destroy(PyObject* self) {
    PyObject_GC_UnTrack(self);
    state(self).self = nullptr;
    {
      const SavedError saved;
      state(self).~State();
    }
    PyTypeObject* type = Py_TYPE(self);
    reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(reinterpret_cast<PyObject*>(type));
  }

  static inline PyTypeObject* type_ = nullptr;
};

using Runtimes = HandleType<RuntimeHandle>;
using Caches = HandleType<CacheHandle>;
using Jobs = HandleType<JobHandle>;

}  // namespace kiln::python
