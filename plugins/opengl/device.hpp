// GlDevice: an opened OpenGL device: contexts on threads of their own behind methods that any thread may call.
//
// Thread-safety: every method from any thread. Ownership: shares the contexts with its programs and buffers; counters
// and log sink belong to the application and outlive it.
#pragma once

#include <mutex>
#include <string>

#include <kiln/device.hpp>
#include <kiln/driver_notes.hpp>
#include <kiln/fence_exchange.hpp>

#include "buffer.hpp"
#include "context_group.hpp"
#include "program.hpp"
#include "queue.hpp"
#include "settings.hpp"

namespace kiln::opengl {

class GlDevice final : public Device, public FenceExchange {
 public:
  static Result<std::unique_ptr<GlDevice>> open(std::shared_ptr<const EglApi> api, const EglDevice& device,
                                                std::string id, const Settings& settings, const DriverContext& context);
  ~GlDevice() override;

  const DeviceInfo& info() const noexcept override { return info_; }
  Result<std::unique_ptr<Buffer>> create_buffer(const BufferDesc& desc) noexcept override;
  Result<std::unique_ptr<Program>> build(const KernelSource& source) noexcept override;
  Result<std::unique_ptr<Program>> load(const KernelSource& source, const ProgramBinary& binary) noexcept override;
  Result<ProgramBinary> serialize(const Program& program) noexcept override;
  Result<std::uint64_t> submit(const Dispatch& dispatch) noexcept override;
  Result<FenceResult> wait(std::uint64_t value, Deadline deadline) noexcept override;
  Result<UniqueFd> export_fence(std::uint64_t value) noexcept override;
  Status wait_for_fence(int sync_file) noexcept override;

 private:
  GlDevice(std::shared_ptr<ContextGroup> group, Facts facts, Mapping mapping, const DriverContext& context);
  Result<BoundPass> bind(std::size_t index, const PassLaunch& launch) const;

  std::shared_ptr<ContextGroup> group_;
  DeviceInfo info_;
  std::vector<GLenum> binary_formats_;
  const Mapping mapping_;
  DriverNotes* const notes_;
  std::once_flag transfer_chosen_;  // at the first buffer: who only looks at the device does not pay for a measurement
  Transfer transfer_ = Transfer::invalid;
  WorkCounters& counters_;
  std::shared_ptr<SharedStaging> staging_;
  GlQueue queue_;
};

// Whether the driver's own cache lies in a folder that Kiln fills, which only the process's environment can arrange.
//
// Thread-safety: free function; reads the environment, which nobody writes once threads exist.

struct Adoption {
  std::string word;    // DeviceInfo::driver_cache: "adopted" or "not adopted"
  std::string reason;  // why not; empty where adopted
};

// Adopted: MESA_SHADER_CACHE_DIR is a folder that kiln::driver_environment() chose, of this user, that nobody else may
// enter (0700), and no ancestor of it can be changed by another user.
Adoption mesa_cache_adoption();

// Which way the host's bytes take to a device's buffers: what [plugin.opengl] says, else the faster one.
//
// Both are measured once for a driver and its device, and the choice is kept as a note for the processes after this
// one. Thread-safety: any thread, one at a time. Ownership: borrows everything.

// notes: null where nothing can be kept: then nothing is measured either, and the kind of the device decides.
Transfer choose_transfer(const std::shared_ptr<ContextGroup>& group, Mapping wanted, const DeviceInfo& info,
                         DriverNotes* notes);

}  // namespace kiln::opengl
