#include "c_interface/callback_device.hpp"

#include "c_interface/status.hpp"

#include <kiln/digest.hpp>

#include <cstdint>
#include <cstring>
#include <exception>
#include <optional>
#include <span>
#include <string_view>

struct kiln_request {
  const kiln::ProgramKey& key;
  std::unique_ptr<kiln::c_interface::CallbackProgram> program;
  std::string message{};
  std::optional<std::uint64_t> refused_bytes{};  // of kiln_request_set_bytes()
};

namespace kiln::c_interface {
namespace {

constexpr const char* format = "application:1";
constexpr std::size_t most_bytes = 256u << 20;  // EntryLimits::payload

std::string name_of(const ProgramKey& key) { return "program '" + key.label + "' (" + key.digest.hex() + ")"; }

struct Callbacks {
  const ProgramKey& key;
  const kiln_compiler& compiler;
};

Callbacks callbacks_of(const KernelSource& source) noexcept {
  const auto& request = static_cast<const CallbackSource&>(source);
  return {request.key, request.compiler};
}

void note_call(const KernelSource& source) noexcept { static_cast<const CallbackSource&>(source).was_called = true; }

// Calls one callback. `what` is its name, for messages.
template <class Callback>
Status call(const char* what, kiln_request& request, const Callback& callback) {
  const std::string who = name_of(request.key) + ": the " + what + " callback";
  kiln_code code = KILN_INTERNAL;
  try {
    code = callback();
  } catch (const std::exception& error) {
    return internal_error(who + " threw an exception: " + error.what() + ". A callback must catch its exceptions");
  } catch (...) {
    return internal_error(who +
                          " threw an exception of a type other than std::exception. A callback must catch its "
                          "exceptions");
  }
  if (code == KILN_OK) return {};
  const int number = static_cast<int>(code);
  if (number < KILN_OK || number > KILN_WRONG_RESULT) {
    return internal_error(who + " returned " + std::to_string(number) + ", expected a kiln_code, 0 to " +
                          std::to_string(static_cast<int>(KILN_WRONG_RESULT)));
  }
  const std::string why = request.message.empty() ? "the callback set no message" : request.message;
  return {static_cast<StatusCode>(number), who + " failed: " + why};
}

Status load_object(kiln_request& request, const kiln_compiler& compiler, std::span<const std::byte> bytes) {
  const Status status =
      call("load", request, [&] { return compiler.load(compiler.user, &request, bytes.data(), bytes.size()); });
  if (!status.ok()) return status;
  if (request.program->has_object) return {};
  return internal_error(name_of(request.key) +
                        ": the load callback returned KILN_OK without an object. Call kiln_request_set_object()");
}

// What load says of the bytes is the fault of build, which made them. What says nothing of them stays: it may pass.
Status of_new_bytes(Status status) {
  status.message += " (with the bytes that build just gave)";
  const bool of_bytes = status.code == StatusCode::corrupt || status.code == StatusCode::unsupported ||
                        status.code == StatusCode::invalid_argument;
  return of_bytes ? internal_error(std::move(status.message)) : status;
}

}  // namespace

CallbackProgram::CallbackProgram(void (*destroy)(void* object),
                                 std::shared_ptr<std::atomic<std::size_t>> count) noexcept
    : destroy_(destroy), count_(std::move(count)) {
  ++*count_;
}

CallbackProgram::~CallbackProgram() {
  drop();
  --*count_;
}

void CallbackProgram::drop() noexcept {
  if (!std::exchange(has_object, false) || destroy_ == nullptr) return;
  try {
    destroy_(object);
  } catch (...) {  // it may be any thread's turn to destroy: there is no caller to tell
  }
}

ProgramHandle CallbackProgram::handle() const noexcept {
  return has_self_.load(std::memory_order_acquire) ? ProgramHandle(self_.lock()) : ProgramHandle();
}

void CallbackProgram::remember(const ProgramHandle& own) const {
  std::call_once(remembered_, [&] {
    self_ = own.weak();
    has_self_.store(true, std::memory_order_release);
  });
}

std::uint64_t CallbackProgram::charge() const noexcept {
  return sizeof(CallbackProgram) + object_charge + (stays_bytes && bytes ? bytes->size() : 0);
}

RunningCallbacks::Scope::Scope(RunningCallbacks& running, const Digest& digest) : running_(running) {
  const std::lock_guard lock(running_.mutex_);
  running_.running_.emplace_back(std::this_thread::get_id(), digest);
  running_.count_.store(running_.running_.size());
}

RunningCallbacks::Scope::~Scope() {
  const std::lock_guard lock(running_.mutex_);
  auto& all = running_.running_;
  for (std::size_t at = all.size(); at-- > 0;) {
    if (all[at].first != std::this_thread::get_id()) continue;
    all.erase(all.begin() + static_cast<std::ptrdiff_t>(at));
    break;
  }
  running_.count_.store(all.size());
}

bool RunningCallbacks::on_this_thread() const noexcept {
  if (count_.load(std::memory_order_relaxed) == 0) return false;
  const std::lock_guard lock(mutex_);
  for (const auto& one : running_) {
    if (one.first == std::this_thread::get_id()) return true;
  }
  return false;
}

bool RunningCallbacks::on_this_thread(const Digest& digest) const noexcept {
  if (count_.load(std::memory_order_relaxed) == 0) return false;
  const std::lock_guard lock(mutex_);
  for (const auto& [thread, running] : running_) {
    if (thread == std::this_thread::get_id() && running == digest) return true;
  }
  return false;
}

Result<std::unique_ptr<Program>> CallbackDevice::build(const KernelSource& source) noexcept try {
  const ProgramKey& key = callbacks_of(source).key;
  const kiln_compiler& compiler = callbacks_of(source).compiler;
  if (compiler.build == nullptr) {
    return not_found(name_of(key) + ": is not stored, and the compiler has no build callback");
  }
  const RunningCallbacks::Scope scope(running_, key.digest);
  kiln_request request{key, std::make_unique<CallbackProgram>(compiler.destroy, count_)};
  request.program->stays_bytes = compiler.load == nullptr;
  note_call(source);
  Status status = call("build", request, [&] { return compiler.build(compiler.user, &request); });
  if (!status.ok()) return status;
  CallbackProgram& program = *request.program;
  if (const auto refused = request.refused_bytes; refused && *refused > most_bytes) {
    return internal_error(name_of(key) + ": the build callback set " + std::to_string(*refused) +
                          " bytes, expected at most " + std::to_string(most_bytes));
  } else if (refused) {
    return unavailable(name_of(key) + ": no memory for the " + std::to_string(*refused) +
                       " bytes that the build callback set");
  }
  if (!program.bytes && !program.has_object) {
    return internal_error(name_of(key) +
                          ": the build callback returned KILN_OK without bytes and without an object. Call "
                          "kiln_request_set_bytes(), kiln_request_set_object() or both");
  }
  if (compiler.load == nullptr && !program.bytes) {
    return internal_error(name_of(key) + ": the build callback set no bytes, and the compiler has no load callback");
  }
  if (compiler.load != nullptr && !program.has_object) {
    status = load_object(request, compiler, *program.bytes);
    if (!status.ok()) return of_new_bytes(std::move(status));
  }
  if (program.object_charge == 0 && program.has_object && program.bytes) program.object_charge = program.bytes->size();
  return std::unique_ptr<Program>(std::move(request.program));
} catch (...) {
  return caught();
}

Result<std::unique_ptr<Program>> CallbackDevice::load(const KernelSource& source, const ProgramBinary& binary) noexcept
    try {
  const auto& [key, compiler] = callbacks_of(source);
  if (binary.format != format) {
    return unsupported(name_of(key) + ": format '" + binary.format + "', expected '" + format + "'");
  }
  kiln_request request{key, std::make_unique<CallbackProgram>(compiler.destroy, count_)};
  CallbackProgram& program = *request.program;
  if (compiler.load == nullptr) {
    program.stays_bytes = true;
    program.bytes = binary.bytes;
    return std::unique_ptr<Program>(std::move(request.program));
  }
  const RunningCallbacks::Scope scope(running_, key.digest);
  note_call(source);
  if (Status status = load_object(request, compiler, binary.bytes); !status.ok()) return status;
  if (program.object_charge == 0) program.object_charge = binary.bytes.size();
  program.bytes.reset();
  return std::unique_ptr<Program>(std::move(request.program));
} catch (...) {
  return caught();
}

Result<ProgramBinary> CallbackDevice::serialize(const Program& program) noexcept try {
  const auto& ours = static_cast<const CallbackProgram&>(program);
  if (!ours.bytes) return unsupported(info_.id + ": the build callback gave an object without bytes");
  if (ours.stays_bytes) return ProgramBinary{format, *ours.bytes};
  ProgramBinary binary{format, std::move(*ours.bytes)};
  ours.bytes.reset();
  return binary;
} catch (...) {
  return caught();
}

Result<std::unique_ptr<Buffer>> CallbackDevice::create_buffer(const BufferDesc&) noexcept {
  return unsupported(info_.id + ": create_buffer: not supported, the application creates buffers");
}

Result<std::uint64_t> CallbackDevice::submit(const Dispatch&) noexcept {
  return unsupported(info_.id + ": submit: not supported, the application dispatches");
}

Result<FenceResult> CallbackDevice::wait(std::uint64_t, Deadline) noexcept {
  return unsupported(info_.id + ": wait: not supported, the application dispatches");
}

Result<DeviceInfo> device_of(const char* function, const kiln_identity& identity) {
  const std::pair<const char*, const char*> texts[] = {
      {"api", identity.api}, {"device", identity.device}, {"driver", identity.driver}};
  for (const auto& [name, text] : texts) {
    if (text != nullptr && *text != '\0') continue;
    return invalid_argument(std::string(function) + ": identity." + name + " is " +
                            (text == nullptr ? "NULL" : "empty") +
                            ", expected a text with everything that changes compiled code. Otherwise Kiln would load "
                            "programs of another device or driver");
  }
  DeviceInfo info;
  info.id = identity.api;
  info.name = identity.device;
  info.driver = identity.driver;
  info.usable = true;
  info.serializes = true;
  info.device_identity = {{"api", identity.api}, {"name", identity.device}};
  info.driver_identity = {{"version", identity.driver}};
  return info;
}

}  // namespace kiln::c_interface

using namespace kiln;

const char* kiln_request_label(const kiln_request* request) {
  return request == nullptr ? "" : request->key.label.c_str();
}

int kiln_request_field(const kiln_request* request, const char* name, const void** bytes, size_t* count) {
  if (request == nullptr || name == nullptr || bytes == nullptr || count == nullptr) return 0;
  try {
    const auto fields = decode_key_material(request->key.material);
    if (!fields) return 0;
    for (const KeyField& field : *fields) {
      if (field.name != name) continue;
      *bytes = field.value.data();
      *count = field.value.size();
      return 1;
    }
  } catch (...) {  // out of memory
  }
  return 0;
}

int kiln_request_set_bytes(kiln_request* request, const void* bytes, size_t count) {
  if (request == nullptr || (bytes == nullptr && count != 0)) return 0;
  if (count <= c_interface::most_bytes) {
    try {
      const auto* first = static_cast<const std::byte*>(bytes);
      request->program->bytes.emplace(first, first + count);
      return 1;
    } catch (...) {  // out of memory
    }
  }
  request->refused_bytes = count;
  return 0;
}

void kiln_request_set_object(kiln_request* request, void* object, uint64_t charge) {
  if (request == nullptr) return;
  if (request->program->object != object) request->program->drop();
  request->program->object = object;
  request->program->has_object = true;
  request->program->object_charge = charge;
}

void kiln_request_set_message(kiln_request* request, const char* message) {
  if (request == nullptr || message == nullptr) return;
  try {
    request->message = message;
  } catch (...) {  // out of memory: the failure has no text
  }
}
