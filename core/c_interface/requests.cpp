#include "c_interface/cache.hpp"
#include "c_interface/reports.hpp"
#include "c_interface/status.hpp"

#include <kiln/digest.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <new>
#include <string_view>
#include <utility>

// The fields of the application stand between those that every key begins and ends with.
struct kiln_key_builder {
  kiln_cache& cache;
  kiln::DeviceInfo device;
  const void* context;
  std::string label;
  kiln::KeyEncoder fields;
  std::size_t count = 0;
  kiln::Status failure;  // the first one
};

namespace kiln::c_interface {
namespace {

constexpr std::uint64_t key_schema = 1;  // raised when the meaning of a stored program changes
constexpr std::size_t most_name = 128;
constexpr std::size_t most_label = 4096;  // the metadata of a program that has a longer one cannot be read
constexpr std::size_t most_fields = 4096;
constexpr std::size_t most_material = 15u << 20;  // EntryLimits::material, less the fields that Kiln adds

Status check_name(const std::string& function, std::string_view name) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
           c == '-';
  };
  if (name.empty() || name.size() > most_name || !std::ranges::all_of(name, plain)) {
    return invalid_argument(function + ": field name '" + std::string(name.substr(0, most_name)) +
                            "': expected 1 to 128 characters: letters, digits, '_', '.' and '-'");
  }
  if (name == "schema" || name == "dialect" || name.starts_with("device.") || name.starts_with("driver.")) {
    return invalid_argument(function + ": field name '" + std::string(name) +
                            "' is reserved. Choose another name; the identity contains the device and the driver");
  }
  return {};
}

kiln_status* add(const char* function, kiln_key_builder* builder, const char* name, const void* bytes,
                 std::size_t count) {
  return guarded([&]() -> Status {
    if (builder == nullptr) return null_argument(function, "builder");
    const auto checked = [&]() -> Status {
      if (name == nullptr) return null_argument(function, "name");
      if (Status status = check_name(function, name); !status.ok()) return status;
      if (bytes == nullptr && count != 0) return null_argument(function, "the value").within(name);
      if (builder->count == most_fields || count > most_material ||
          builder->fields.material().size() > most_material - count) {
        return invalid_argument(std::string(function) + ": field '" + name + "' of " + std::to_string(count) +
                                " bytes: a key has at most " + std::to_string(most_fields) + " fields and " +
                                std::to_string(most_material) + " bytes; this key already has " +
                                std::to_string(builder->count) + " fields and " +
                                std::to_string(builder->fields.material().size()) + " bytes");
      }
      builder->fields.field(name, std::string_view(static_cast<const char*>(bytes), count));
      ++builder->count;
      return {};
    };
    Status status = checked();
    if (!status.ok() && builder->failure.ok()) builder->failure = status;
    return status;
  });
}

}  // namespace
}  // namespace kiln::c_interface

using namespace kiln;
using namespace kiln::c_interface;

kiln_status* kiln_key_builder_create(kiln_cache* cache, const kiln_identity* identity, const char* label,
                                     kiln_key_builder** builder) {
  constexpr const char* function = "kiln_key_builder_create";
  return guarded([&]() -> Status {
    if (builder == nullptr) return null_argument(function, "builder");
    *builder = nullptr;
    if (Status status = check_cache(function, cache); !status.ok()) return status;
    if (label == nullptr) return null_argument(function, "label");
    if (const std::size_t length = std::strlen(label); length > most_label) {
      return invalid_argument(std::string(function) + ": label of " + std::to_string(length) +
                              " bytes, expected at most " + std::to_string(most_label));
    }
    kiln_identity copy;
    if (Status status = copy_struct(function, "identity", identity, &copy, sizeof copy); !status.ok()) return status;
    Result<DeviceInfo> device = device_of(function, copy);
    if (!device) return std::move(device).error();
    *builder = new kiln_key_builder{*cache, std::move(*device), copy.context, label, {}, 0, {}};
    return {};
  });
}

kiln_status* kiln_key_builder_text(kiln_key_builder* builder, const char* name, const char* text) {
  constexpr const char* function = "kiln_key_builder_text";
  if (text == nullptr && builder != nullptr) return add(function, builder, name, nullptr, 1);
  return add(function, builder, name, text, text == nullptr ? 0 : std::strlen(text));
}

kiln_status* kiln_key_builder_bytes(kiln_key_builder* builder, const char* name, const void* bytes, size_t count) {
  return add("kiln_key_builder_bytes", builder, name, bytes, count);
}

kiln_status* kiln_key_builder_number(kiln_key_builder* builder, const char* name, uint64_t value) {
  std::array<unsigned char, sizeof value> bytes;
  for (unsigned char& byte : bytes) {
    byte = static_cast<unsigned char>(value & 0xff);
    value >>= 8;
  }
  return add("kiln_key_builder_number", builder, name, bytes.data(), bytes.size());
}

kiln_status* kiln_key_builder_finish(const kiln_key_builder* builder, kiln_key** key) {
  constexpr const char* function = "kiln_key_builder_finish";
  return guarded([&]() -> Status {
    if (key == nullptr) return null_argument(function, "key");
    *key = nullptr;
    if (builder == nullptr) return null_argument(function, "builder");
    if (Status status = check_cache(function, &builder->cache); !status.ok()) return status;
    if (!builder->failure.ok()) return builder->failure.within(std::string(function) + ": a field is missing");
    if (builder->count == 0) {
      return invalid_argument(std::string(function) + ": program '" + builder->label +
                              "' has no field. Add everything that changes the compiled bytes, such as the source");
    }
    KeyEncoder start, end;
    start.field("schema", key_schema);
    start.field("dialect", "application");
    for (const auto& [name, value] : builder->device.device_identity) end.field("device." + name, value);
    for (const auto& [name, value] : builder->device.driver_identity) end.field("driver." + name, value);
    std::string material = start.material() + builder->fields.material() + end.material();
    const Digest digest = sha256(material);
    auto device = builder->cache.device(builder->device, builder->context);
    *key = new kiln_key{builder->cache.id, std::move(device), {digest, std::move(material), builder->label}};
    return {};
  });
}

void kiln_key_builder_free(kiln_key_builder* builder) { delete builder; }
void kiln_key_free(kiln_key* key) { delete key; }

void kiln_key_hex(const kiln_key* key, char hex[65]) {
  if (hex == nullptr) return;
  constexpr char digits[] = "0123456789abcdef";
  std::size_t at = 0;
  if (key != nullptr) {
    for (const std::uint8_t byte : key->key.digest.bytes) {
      hex[at++] = digits[byte >> 4];
      hex[at++] = digits[byte & 15];
    }
  }
  hex[at] = '\0';
}

// The functions of kiln.h that ask a cache for programs. cache.cpp has those of the cache as a whole.

namespace kiln::c_interface {

Result<const kiln_compiler*> compiler_of(const char* function, const kiln_compiler* given, kiln_compiler& copy) {
  const kiln_compiler* compiler = given;
  if (given == nullptr || given->size != sizeof copy) {
    if (Status status = copy_struct(function, "compiler", given, &copy, sizeof copy); !status.ok()) return status;
    compiler = &copy;
  }
  if (compiler->build != nullptr || compiler->load != nullptr) return compiler;
  return invalid_argument(std::string(function) + ": compiler has neither a build nor a load callback");
}

Status check_request(const char* function, kiln_cache* cache, const kiln_key* key) {
  if (cache == nullptr) return null_argument(function, "cache");
  if (key == nullptr) return null_argument(function, "key");
  if (!cache->process.is_this()) return cache->process.check(function, "cache");
  if (cache->log.runs_here()) [[unlikely]]
    return OpenedLog::called_by_log(function);
  if (key->cache == cache->id) {
    if (!key->device->was_requested()) cache->requested(*key->device);
    return {};
  }
  return invalid_argument(std::string(function) + ": the key of program '" + key->key.label +
                          "' was created for another cache. Create the key with a key builder of this cache");
}

namespace {

// How often a request that waited for another caller's asks again: that one may have had no build callback, or have
// been interrupted. A lookup builds nothing, so that several of them may be met.
int most_repeats(StatusCode code) noexcept {
  return code == StatusCode::not_found ? 16 : code == StatusCode::unavailable ? 1 : 0;
}

Result<std::unique_ptr<kiln_program>> get(const char* function, kiln_cache& cache, const kiln_key& key,
                                          const kiln_compiler& compiler) {
  if (cache.running.on_this_thread(key.key.digest)) {
    return invalid_argument(std::string(function) + ": a callback that builds or loads program '" + key.key.label +
                            "' (" + key.key.digest.hex() +
                            ") requested the same program: the request would wait for itself");
  }
  const CallbackSource source(key.key, compiler);
  Result<Acquired> acquired = cache.programs->get_or_build(key.key, source, *key.device);
  for (int repeats = 0; !acquired && !source.was_called && compiler.build != nullptr; ++repeats) {
    if (repeats >= most_repeats(acquired.error().code)) break;
    acquired = cache.programs->get_or_build(key.key, source, *key.device);
  }
  if (!acquired) return std::move(acquired).error();
  if (!is_of_kind(*acquired->program, compiler)) {
    const bool has_load = compiler.load != nullptr;
    return invalid_argument(std::string(function) + ": program '" + key.key.label + "' (" + key.key.digest.hex() +
                            ") is in memory as " +
                            (has_load ? "bytes: an earlier request had no load callback, but this request has one"
                                      : "an object: an earlier request had a load callback, but this one has none") +
                            ". Use the same kind of compiler in all requests for a key");
  }
  if (acquired->tier == Tier::built && cache.writes_remotes) {  // load took it: there is no dispatch to wait for
    Measurement loaded;
    loaded.first_run = true;
    cache.programs->record(key.key, *key.device, loaded, 0);
  }
  static_cast<const CallbackProgram&>(*acquired->program).remember(acquired->program);
  return std::make_unique<kiln_program>(kiln_program{std::move(acquired->program), tier_of(acquired->tier)});
}

// A program in memory, without what only a build or an error needs. NULL: get() answers.
kiln_program* from_memory(kiln_cache* cache, const kiln_key* key, const kiln_compiler* compiler) noexcept {
  if (cache == nullptr || key == nullptr || compiler == nullptr || compiler->size != sizeof *compiler) return nullptr;
  if (!cache->process.is_this() || key->cache != cache->id || cache->log.runs_here()) return nullptr;
  const RunningCalls::Scope scope(cache->calls);
  const Guard guard = cache->programs->enter();
  const Program* program = cache->programs->find(key->key.digest, *key->device, guard);
  if (program == nullptr || !is_of_kind(*program, *compiler)) return nullptr;
  if (compiler->build == nullptr && compiler->load == nullptr) return nullptr;
  ProgramHandle handle = static_cast<const CallbackProgram*>(program)->handle();
  return handle ? new (std::nothrow) kiln_program{std::move(handle), KILN_TIER_MEMORY} : nullptr;
}

// Of a program of bytes. Not NULL also where it has none of them: NULL means a program of objects.
struct BytesView {
  const void* first = nullptr;
  std::size_t count = 0;
};
BytesView bytes_of(const CallbackProgram& program) noexcept {
  if (!program.stays_bytes || !program.bytes) return {};
  return {program.bytes->empty() ? "" : static_cast<const void*>(program.bytes->data()), program.bytes->size()};
}

}  // namespace
}  // namespace kiln::c_interface

using namespace kiln;
using namespace kiln::c_interface;

kiln_status* kiln_cache_get_or_build(kiln_cache* cache, const kiln_key* key, const kiln_compiler* compiler,
                                     kiln_program** program) {
  constexpr const char* function = "kiln_cache_get_or_build";
  if (program != nullptr && (*program = from_memory(cache, key, compiler)) != nullptr) return nullptr;
  return guarded([&]() -> Status {
    if (program == nullptr) return null_argument(function, "program");
    *program = nullptr;
    if (Status status = check_request(function, cache, key); !status.ok()) return status;
    const RunningCalls::Scope scope(cache->calls);
    kiln_compiler copy;
    const Result<const kiln_compiler*> callbacks = compiler_of(function, compiler, copy);
    if (!callbacks) return callbacks.error();
    auto got = get(function, *cache, *key, **callbacks);
    if (!got) return std::move(got).error();
    *program = got->release();
    return {};
  });
}

void* kiln_program_object(const kiln_program* program) {
  return program == nullptr ? nullptr : program->program().object;
}

const void* kiln_program_bytes(const kiln_program* program, size_t* count) {
  if (count != nullptr) *count = 0;
  const BytesView bytes = program == nullptr ? BytesView() : bytes_of(program->program());
  if (count != nullptr) *count = bytes.count;
  return bytes.first;
}

kiln_tier kiln_program_tier(const kiln_program* program) { return program == nullptr ? KILN_TIER_NONE : program->tier; }

void kiln_program_free(kiln_program* program) {
  if (program != nullptr && program->process.is_this()) delete program;
}

kiln_guard kiln_cache_enter(kiln_cache* cache) {
  kiln_guard guard{nullptr};
  if (cache == nullptr || !cache->process.is_this()) return guard;
  static_assert(sizeof(Guard) == sizeof guard.slot && alignof(Guard) == alignof(void*),
                "a Guard fits into a kiln_guard");
  // A Guard is one reference to the slot of its thread. enter() returns it without a copy.
  new (&guard.slot) Guard(cache->programs->enter());
  return guard;
}

int kiln_cache_find(kiln_cache* cache, const kiln_key* key, const kiln_guard* guard, kiln_found* found) {
  if (cache == nullptr || key == nullptr || guard == nullptr || guard->slot == nullptr || found == nullptr) return 0;
  if (key->cache != cache->id || !cache->process.is_this()) return 0;
  const auto& entered = *std::launder(reinterpret_cast<const Guard*>(&guard->slot));
  const Program* program = cache->programs->find(key->key.digest, *key->device, entered);
  if (program == nullptr) return 0;
  const auto& ours = static_cast<const CallbackProgram&>(*program);
  found->object = ours.object;
  const BytesView bytes = bytes_of(ours);
  found->bytes = bytes.first;
  found->count = bytes.count;
  return 1;
}

void kiln_guard_leave(kiln_guard* guard) {
  if (guard == nullptr || guard->slot == nullptr) return;
  std::launder(reinterpret_cast<Guard*>(&guard->slot))->~Guard();
  guard->slot = nullptr;
}

// --- asynchronous requests

namespace {

// Shared by the application and the thread that works on it.
struct PendingState {
  std::mutex mutex;
  std::condition_variable done;
  bool finished = false;
  bool taken = false;
  Status failure;
  std::unique_ptr<kiln_program> program;

  void finish(Status status, std::unique_ptr<kiln_program> made) {
    const std::lock_guard lock(mutex);
    if (finished) return;
    failure = std::move(status);
    program = std::move(made);
    finished = true;
    done.notify_all();
  }
};

// Finishes the state also where the work is dropped.
class PendingWork {
 public:
  explicit PendingWork(std::shared_ptr<PendingState> state) : state_(std::move(state)) {}
  PendingWork(const PendingWork&) = delete;
  PendingWork& operator=(const PendingWork&) = delete;
  ~PendingWork() { state_->finish(cancelled("kiln_cache_close was called before the request began"), nullptr); }

  PendingState& state() noexcept { return *state_; }

 private:
  const std::shared_ptr<PendingState> state_;
};

}  // namespace

struct kiln_pending {
  std::shared_ptr<PendingState> state;
  const CallbackLog* log;  // of the cache, which may be closed: only compared
  const OpeningProcess process{};
};

kiln_status* kiln_cache_start(kiln_cache* cache, const kiln_key* key, const kiln_compiler* compiler,
                              kiln_pending** pending) {
  constexpr const char* function = "kiln_cache_start";
  return guarded([&]() -> Status {
    if (pending == nullptr) return null_argument(function, "pending");
    *pending = nullptr;
    if (Status status = check_request(function, cache, key); !status.ok()) return status;
    kiln_compiler copy;
    const Result<const kiln_compiler*> callbacks = compiler_of(function, compiler, copy);
    if (!callbacks) return callbacks.error();
    auto made = std::make_unique<kiln_pending>(kiln_pending{std::make_shared<PendingState>(), cache->log.sink.get()});
    auto work = std::make_shared<PendingWork>(made->state);
    cache->workers.start([work, cache, of = *key, by = **callbacks] {
      try {
        auto got = get("kiln_cache_start", *cache, of, by);
        if (got) return work->state().finish({}, std::move(*got));
        work->state().finish(std::move(got).error(), nullptr);
      } catch (...) {
        work->state().finish(caught(), nullptr);
      }
    });
    *pending = made.release();
    return {};
  });
}

kiln_status* kiln_pending_wait(kiln_pending* pending, uint32_t timeout_ms, kiln_program** program) {
  constexpr const char* function = "kiln_pending_wait";
  return guarded([&]() -> Status {
    if (program == nullptr) return null_argument(function, "program");
    *program = nullptr;
    if (pending == nullptr) return null_argument(function, "pending");
    if (Status status = pending->process.check(function, "cache of the request"); !status.ok()) return status;
    PendingState& state = *pending->state;
    std::unique_lock lock(state.mutex);
    const auto is_finished = [&] { return state.finished; };
    if (!state.finished && timeout_ms != 0 && CallbackLog::runs_here(pending->log)) {
      return OpenedLog::called_by_log(function);
    }
    if (!state.done.wait_for(lock, std::chrono::milliseconds(timeout_ms), is_finished)) {
      return timed_out(std::string(function) + ": the request has not finished after " + std::to_string(timeout_ms) +
                       " ms");
    }
    if (!state.failure.ok()) return state.failure;
    if (std::exchange(state.taken, true)) {
      return invalid_argument(std::string(function) + ": an earlier call has already returned the program");
    }
    *program = state.program.release();
    return {};
  });
}

int kiln_pending_ended(const kiln_pending* pending) {
  if (pending == nullptr || !pending->process.is_this()) return 0;
  const std::lock_guard lock(pending->state->mutex);
  return pending->state->finished ? 1 : 0;
}

void kiln_pending_free(kiln_pending* pending) {
  if (pending != nullptr && pending->process.is_this()) delete pending;
}
