// CallbackDevice: a Device whose build and load are the callbacks of one request, so that the program cache stores what
// an application compiles.
//
// The callbacks come with each request: the KernelSource that a request passes to the cache is a CallbackSource. The
// cache passes that object on as it is. Thread-safety: as Device; a callback runs on the thread that called the cache.
// Ownership: programs own their objects and do not need the device.
#pragma once

#include <kiln.h>

#include <kiln/device.hpp>

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace kiln::c_interface {

// A request's callbacks and key. REQUIRES: both outlive the request.
struct CallbackSource : KernelSource {
  CallbackSource(const ProgramKey& of, const kiln_compiler& by) : key(of), compiler(by) { dialect = Dialect::library; }

  const ProgramKey& key;
  const kiln_compiler& compiler;
  mutable bool was_called = false;  // one of the callbacks, on the thread that asks
};

class CallbackProgram final : public Program {
 public:
  // count: of the programs that are alive.
  CallbackProgram(void (*destroy)(void* object), std::shared_ptr<std::atomic<std::size_t>> count) noexcept;
  ~CallbackProgram() override;

  std::uint64_t charge() const noexcept override;
  void drop() noexcept;  // destroys the object
  // A handle of this program, once one was given to remember(); null before. Any thread.
  ProgramHandle handle() const noexcept;
  void remember(const ProgramHandle& own) const;

  void* object = nullptr;
  bool has_object = false;
  bool stays_bytes = false;  // the program has no `load` callback: its bytes are what is asked for
  std::uint64_t object_charge = 0;
  // What `build` made, until it is serialized; of a program of bytes for ever.
  mutable std::optional<std::vector<std::byte>> bytes;

 private:
  mutable std::once_flag remembered_;
  mutable std::atomic<bool> has_self_{false};
  mutable std::weak_ptr<const Program> self_;
  void (*const destroy_)(void* object);
  const std::shared_ptr<std::atomic<std::size_t>> count_;
};

// The keys whose callbacks run now, by thread: a callback that asks for its own key would wait for itself.
class RunningCallbacks {
 public:
  class Scope {
   public:
    Scope(RunningCallbacks& running, const Digest& digest);
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope();

   private:
    RunningCallbacks& running_;
  };

  bool on_this_thread() const noexcept;
  bool on_this_thread(const Digest& digest) const noexcept;

 private:
  std::atomic<std::size_t> count_{0};  // so that a request without a running callback takes no lock
  mutable std::mutex mutex_;
  std::vector<std::pair<std::thread::id, Digest>> running_;
};

class CallbackDevice final : public Device {
 public:
  CallbackDevice(DeviceInfo info, const void* context, RunningCallbacks& running)
      : info_(std::move(info)), context_(context), running_(running) {}

  // Guarded by the cache, which gives a device without programs to another context.
  const void* context() const noexcept { return context_; }
  void set_context(const void* context) noexcept { context_ = context; }
  bool was_requested() const noexcept { return was_requested_; }
  void set_requested() noexcept { was_requested_ = true; }
  std::size_t programs() const noexcept { return *count_; }  // that are alive

  const DeviceInfo& info() const noexcept override { return info_; }
  Result<std::unique_ptr<Program>> build(const KernelSource& source) noexcept override;
  Result<std::unique_ptr<Program>> load(const KernelSource& source, const ProgramBinary& binary) noexcept override;
  Result<ProgramBinary> serialize(const Program& program) noexcept override;

  // unsupported: the application has its own.
  Result<std::unique_ptr<Buffer>> create_buffer(const BufferDesc& desc) noexcept override;
  Result<std::uint64_t> submit(const Dispatch& dispatch) noexcept override;
  Result<FenceResult> wait(std::uint64_t value, Deadline deadline) noexcept override;

 private:
  const DeviceInfo info_;
  const void* context_;  // kiln_identity::context
  std::atomic<bool> was_requested_{false};
  RunningCallbacks& running_;
  const std::shared_ptr<std::atomic<std::size_t>> count_ = std::make_shared<std::atomic<std::size_t>>(0);
};

// Whether the program is what the compiler makes: an object with a load callback, bytes without one.
inline bool is_of_kind(const Program& program, const kiln_compiler& compiler) noexcept {
  return static_cast<const CallbackProgram&>(program).stays_bytes == (compiler.load == nullptr);
}

// invalid_argument: a text of the identity is missing.
Result<DeviceInfo> device_of(const char* function, const kiln_identity& identity);

}  // namespace kiln::c_interface
