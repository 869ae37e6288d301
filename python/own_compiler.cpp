#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include "module.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "handles.hpp"
#include "interpreter.hpp"

namespace kiln::python {
namespace {

constexpr Py_ssize_t most_bytes = Py_ssize_t{256} << 20;  // as kiln_request_set_bytes() takes
constexpr std::uint32_t longest_step_ms = 20;             // how late Ctrl-C may be seen

thread_local std::vector<std::string> being_built;  // keys, on this thread

struct KeyFree {
  void operator()(kiln_key* key) const { kiln_key_free(key); }
  void operator()(kiln_key_builder* builder) const { kiln_key_builder_free(builder); }
  void operator()(kiln_program* program) const { kiln_program_free(program); }
  void operator()(kiln_pending* pending) const { kiln_pending_free(pending); }
};
template <class T>
using Owned = std::unique_ptr<T, KeyFree>;

// One call of get(): the callable, and what it raised. The exception is the caller's own; others that wait get its
// text.
struct BuildCall {
  PyObject* build = nullptr;
  std::string key;  // in hexadecimal
  Raised raised;
};

// false: an exception is set.
bool set_bytes(kiln_request* request, PyObject* made) {
  Py_buffer view;
  if (PyObject_GetBuffer(made, &view, PyBUF_SIMPLE) != 0) return false;
  const Py_ssize_t count = view.len;
  const bool taken = count > 0 && count <= most_bytes &&
                     kiln_request_set_bytes(request, view.buf, static_cast<std::size_t>(count)) != 0;
  PyBuffer_Release(&view);
  if (taken) return true;
  if (count == 0) {
    PyErr_SetString(PyExc_ValueError, "the build function returned no bytes, expected those of a compiled program");
  } else if (count > most_bytes) {
    PyErr_Format(PyExc_ValueError, "the build function returned %zd bytes, expected at most %zd", count, most_bytes);
  } else {
    PyErr_NoMemory();
  }
  return false;
}

// Calls the callable. REQUIRES: the GIL.
kiln_code build_here(BuildCall& call, kiln_request* request) {
  being_built.push_back(call.key);
  const Object made(PyObject_CallNoArgs(call.build));
  const bool built = made && set_bytes(request, made.get());
  being_built.pop_back();
  if (built) return KILN_OK;
  call.raised.take();
  const Object text(call.raised.value() == nullptr ? nullptr : PyObject_Str(call.raised.value()));
  const Object bytes(text ? PyUnicode_AsUTF8String(text.get()) : nullptr);
  if (bytes) kiln_request_set_message(request, PyBytes_AsString(bytes.get()));
  PyErr_Clear();
  return KILN_UNAVAILABLE;
}

kiln_code on_build(void* user, kiln_request* request) {
  const InPython python;
  if (python) return build_here(*static_cast<BuildCall*>(user), request);
  kiln_request_set_message(request, "the Python interpreter is shutting down");
  return KILN_UNAVAILABLE;
}

kiln_code hand_over(void* user, kiln_request* request) {
  auto& build = *static_cast<HandedBuild*>(user);
  std::unique_lock lock(build.mutex);
  build.request = request;
  build.changed.notify_all();
  build.changed.wait(lock, [&] { return build.done || build.abandoned; });
  build.request = nullptr;
  if (build.done) return build.code;
  kiln_request_set_message(request, "the caller was interrupted before the build began");
  return KILN_UNAVAILABLE;
}

kiln_compiler compiler_of(void* user, kiln_code (*build)(void*, kiln_request*)) {
  kiln_compiler compiler = kiln_compiler_default();
  compiler.user = user;
  compiler.build = build;
  return compiler;
}

// The key of the arguments. Null: an exception is set.
Owned<kiln_key> key_of(CacheHandle& cache, const kiln_identity& identity, const char* label, PyObject* fields) {
  kiln_key_builder* made = nullptr;
  kiln_status* failure = kiln_key_builder_create(cache.cache, &identity, label, &made);
  const Owned<kiln_key_builder> builder(made);
  const Py_ssize_t count = failure == nullptr ? PySequence_Size(fields) : 0;
  if (count < 0) return nullptr;
  for (Py_ssize_t at = 0; at < count && failure == nullptr; ++at) {
    const Object field(PySequence_GetItem(fields, at));
    const char *name = nullptr, *bytes = nullptr;
    Py_ssize_t length = 0;
    if (!field || PyArg_ParseTuple(field.get(), "sy#", &name, &bytes, &length) == 0) return nullptr;
    failure = kiln_key_builder_bytes(builder.get(), name, bytes, static_cast<std::size_t>(length));
  }
  kiln_key* key = nullptr;
  if (failure == nullptr) failure = kiln_key_builder_finish(builder.get(), &key);
  if (failure != nullptr) raise(failure);
  return Owned<kiln_key>(key);
}

PyObject* bytes_and_tier(const void* bytes, std::size_t count, kiln_tier tier) {
  return Py_BuildValue("y#i", bytes == nullptr ? "" : static_cast<const char*>(bytes), static_cast<Py_ssize_t>(count),
                       static_cast<int>(tier));
}

// (bytes, tier) if the program is in memory. Null, and no exception: it is not.
PyObject* find_in_memory(CacheHandle& cache, const kiln_key* key) {
  kiln_guard guard = kiln_cache_enter(cache.cache);
  kiln_found found{};
  PyObject* made = nullptr;
  if (kiln_cache_find(cache.cache, key, &guard, &found) != 0) {
    made = bytes_and_tier(found.bytes, found.count, KILN_TIER_MEMORY);
  }
  kiln_guard_leave(&guard);
  return made;
}

// Whether Ctrl-C can reach this thread, and no build on it waits for the result.
bool sees_signals(const CacheHandle& cache) {
  return gettid() == getpid() && cache.process == getpid() && being_built.empty();
}

// Runs the build if the cache's thread waits for it. Whether it did.
bool answer(HandedBuild& build, BuildCall& call) {
  kiln_request* request = nullptr;
  {
    const std::lock_guard lock(build.mutex);
    if (!build.done) request = build.request;
  }
  if (request == nullptr) return false;
  const kiln_code code = build_here(call, request);
  const std::lock_guard lock(build.mutex);
  build.code = code;
  build.done = true;
  build.changed.notify_all();
  return true;
}

// Waits for a request that is to be built, or for the program. A program on disk or a build comes soon as a rule: for
// the first few steps this notices both at once, later a build after the step.
class StepWait {
 public:
  StepWait(HandedBuild& build, kiln_pending* pending) noexcept : build_(build), pending_(pending) {}

  // Whether the request has ended; `failure` and `program` are then its outcome.
  bool ended(kiln_status*& failure, kiln_program*& program) {
    const std::uint32_t step_ms = short_steps_ < most_short_steps ? 0 : step_ms_;
    if (step_ms == 0) {
      ++short_steps_;
      std::unique_lock lock(build_.mutex);
      build_.changed.wait_for(lock, std::chrono::microseconds(50), [&] { return build_.request != nullptr; });
    } else {
      step_ms_ = std::min(2 * step_ms_, longest_step_ms);
    }
    const auto begun = std::chrono::steady_clock::now();
    failure = kiln_pending_wait(pending_, step_ms, &program);
    if (kiln_status_code(failure) != KILN_TIMEOUT) return true;
    // A request that failed with this code by itself is answered at once.
    if (std::chrono::steady_clock::now() - begun < std::chrono::milliseconds(step_ms)) return true;
    kiln_status_free(std::exchange(failure, nullptr));
    return false;
  }

  void was_built() noexcept { short_steps_ = most_short_steps; }

 private:
  static constexpr int most_short_steps = 40;
  HandedBuild& build_;
  kiln_pending* pending_;
  int short_steps_ = 0;
  std::uint32_t step_ms_ = 1;
};

// Gets the program by a thread of the cache, while this one runs the build and sees signals. false: a signal handler
// raised.
bool get_in_steps(CacheHandle& cache, const kiln_key* key, BuildCall& call, kiln_status*& failure,
                  kiln_program*& program) {
  auto build = std::make_unique<HandedBuild>();
  const kiln_compiler compiler = compiler_of(build.get(), hand_over);
  kiln_pending* started = nullptr;
  failure = kiln_cache_start(cache.cache, key, &compiler, &started);
  const Owned<kiln_pending> pending(started);
  if (failure != nullptr) return true;
  StepWait wait(*build, pending.get());
  while (!waiting([&] { return wait.ended(failure, program); })) {
    if (answer(*build, call)) wait.was_built();
    if (PyErr_CheckSignals() == 0) continue;
    const std::lock_guard lock(build->mutex);
    build->abandoned = true;
    build->changed.notify_all();
    cache.abandoned.push_back(build.get());
    static_cast<void>(build.release());
    return false;
  }
  return true;
}

}  // namespace

PyObject* get(PyObject*, PyObject* arguments) {
  PyObject *object = nullptr, *fields = nullptr;
  const char *api = nullptr, *device = nullptr, *driver = nullptr, *label = nullptr;
  BuildCall call;
  if (PyArg_ParseTuple(arguments, "O(sss)sOO", &object, &api, &device, &driver, &label, &fields, &call.build) == 0) {
    return nullptr;
  }
  if (Runtimes::holds(object)) {
    return PyErr_Format(PyExc_TypeError, "found the cache of a runtime, expected a cache of kiln.open_cache()");
  }
  CacheHandle* cache = Caches::of(object);
  if (cache == nullptr) return nullptr;
  const kiln_identity identity = kiln_identity_of(api, device, driver);
  const Owned<kiln_key> key = key_of(*cache, identity, label, fields);
  if (key == nullptr) return nullptr;
  char hex[65];
  kiln_key_hex(key.get(), hex);
  call.key = hex;
  if (PyObject* found = find_in_memory(*cache, key.get())) return found;
  if (PyErr_Occurred() != nullptr) return nullptr;
  if (std::ranges::find(being_built, call.key) != being_built.end()) {
    const std::string message =
        "the build of program '" + std::string(label) + "' requested the same program: the build would wait for itself";
    return raise(kiln_status_make(KILN_INVALID_ARGUMENT, message.c_str()));
  }
  kiln_program* program = nullptr;
  kiln_status* failure = nullptr;
  if (sees_signals(*cache)) {
    if (!get_in_steps(*cache, key.get(), call, failure, program)) return nullptr;
  } else {
    const kiln_compiler compiler = compiler_of(&call, on_build);
    failure = waiting([&] { return kiln_cache_get_or_build(cache->cache, key.get(), &compiler, &program); });
  }
  const Owned<kiln_program> owned(program);
  if (call.raised) {  // the caller's own exception, as it was raised
    kiln_status_free(failure);
    call.raised.raise();
    return nullptr;
  }
  if (failure != nullptr) return raise(failure);
  std::size_t length = 0;
  const void* bytes = kiln_program_bytes(program, &length);
  return bytes_and_tier(bytes, length, kiln_program_tier(program));
}

}  // namespace kiln::python
