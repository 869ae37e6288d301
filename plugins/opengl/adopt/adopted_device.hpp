// The device behind an application's own context, and that context.
#pragma once

#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <kiln/adopted_gl.hpp>

#include "codec/context.hpp"

namespace kiln::opengl {

// AdoptedContext: the application's context as it was when it was adopted, and the programs that other threads dropped.
//
// Thread-safety: drop() from any thread, everything else on the adopting thread (enter() says where it is not).
// Ownership: shared by the device and its programs, so that a program may outlive the device.
class AdoptedContext {
 public:
  static Result<std::shared_ptr<AdoptedContext>> adopt(FindGlFunction find, Log log);
  AdoptedContext(FindGlFunction find, Log log);
  AdoptedContext(const AdoptedContext&) = delete;
  AdoptedContext& operator=(const AdoptedContext&) = delete;

  const CurrentContext& current() const noexcept { return current_; }

  // Before each use: this is the adopting thread and, where that can be told, the adopted context is current. Deletes
  // what was dropped. An error that the application left in the context is taken off, and said: it would otherwise be
  // taken for one of the calls that follow.
  Status enter();
  // The name of a program nobody holds any more.
  void drop(GLuint program);
  // No more names are kept: the context may be gone.
  void close();

 private:
  using CurrentFunction = void* (*)();

  Status load(FindGlFunction find);
  Status is_current() const;
  Status check(std::string_view doing);

  const Log log_;
  Gl gl_{};
  const CurrentFunction egl_current_;  // eglGetCurrentContext; null where there is no EGL
  void* const egl_context_;            // null: the context is not EGL's, and which one is current cannot be told
  const std::thread::id thread_ = std::this_thread::get_id();
  CurrentContext current_;
  std::mutex mutex_;
  std::vector<GLuint> dropped_;
  bool closed_ = false;
};

// AdoptedDevice: the codec of an adopted context as a Device, for the cache to call.
//
// Thread-safety: info() from any thread; the codec on the adopting thread, and unavailable on another. Ownership:
// shares the context's record with its programs.
class AdoptedDevice final : public Device {
 public:
  AdoptedDevice(std::shared_ptr<AdoptedContext> context, Facts facts);

  const DeviceInfo& info() const noexcept override { return info_; }
  Result<std::unique_ptr<Buffer>> create_buffer(const BufferDesc& desc) noexcept override;
  Result<std::unique_ptr<Program>> build(const KernelSource& source) noexcept override;
  Result<std::unique_ptr<Program>> load(const KernelSource& source, const ProgramBinary& binary) noexcept override;
  Result<ProgramBinary> serialize(const Program& program) noexcept override;
  Result<std::uint64_t> submit(const Dispatch& dispatch) noexcept override;
  Result<FenceResult> wait(std::uint64_t value, Deadline deadline) noexcept override;

  // The program for one holder alone: the acquired one, or where that has had a holder, a second link of its binary.
  // REQUIRES: the acquired program is this device's; enter() was ok.
  Result<Acquired> for_one_holder(Acquired acquired, const KernelSource& source);

  // REQUIRES: the program was made by an AdoptedDevice.
  static GLuint name_of(const Program& program) noexcept;

 private:
  const std::shared_ptr<AdoptedContext> context_;
  const DeviceInfo info_;
  const std::vector<GLenum> binary_formats_;
  WorkCounters counters_;
};

}  // namespace kiln::opengl
