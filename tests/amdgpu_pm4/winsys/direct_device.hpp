// DirectDevice: the simulated node without the plugin's queue, for submissions that the queue never makes: programs and
// memory of a test's own, and a DirectSubmission that checks its packets as the queue does before it hands them over.
//
// Thread-safety: one thread. Ownership: what a submission names outlives its end.
#pragma once

#include <memory>
#include <vector>

#include "amdgpu_pm4/device/program.hpp"
#include "amdgpu_pm4/packets/encoders.hpp"
#include "amdgpu_pm4/winsys/winsys.hpp"

namespace kiln::amdgpu_pm4 {

struct DirectDevice {
  // Warns with the reason where there is no simulated node or no compiler: then the running check returns.
  static bool possible();

  DirectDevice();

  std::unique_ptr<BufferObject> buffer(BufferUse use, std::uint64_t bytes = 4096);
  // A kernel "work" of 64 lanes over buffers with these accesses.
  std::shared_ptr<const LoadedKernel> load(const std::string& text, const std::vector<Access>& bindings);
  // Its kernarg segment, filled with the buffers' addresses.
  std::unique_ptr<BufferObject> arguments(const LoadedKernel& kernel, const std::vector<const BufferObject*>& buffers);

  std::unique_ptr<Winsys> winsys;
  Target target = Target::invalid;
  DeviceShape shape;
  std::unique_ptr<ProgramLoader> loader;
  std::unique_ptr<Context> context;
  std::unique_ptr<Timeline> timeline;
};

// The packets of one submission, begun with what every submission begins with.
class DirectSubmission {
 public:
  explicit DirectSubmission(DirectDevice& device);

  PacketWriter& out() noexcept { return out_; }
  // What the packets touch beside programs; `rights`: further ones than its mapping's, as is_signalled.
  void touch(const BufferObject& buffer, std::uint8_t rights = 0);
  // All state, then the dispatch.
  void dispatch(const LoadedKernel& kernel, const DispatchArguments& arguments);
  // The caches that stand between what was done before and what comes after.
  void barrier();
  // Writes back what the host and other drivers shall see; then the point is passed. The submission's number.
  std::uint64_t submit(std::uint64_t point, const std::vector<SyncPoint>& waits = {});

 private:
  DirectDevice& device_;
  std::unique_ptr<BufferObject> commands_, report_;
  PacketWriter out_;
  std::vector<BufferRange> ranges_;
  std::vector<std::uint32_t> handles_;
  std::vector<ProgramFacts> programs_;
};

std::span<std::uint32_t> dwords_in(BufferObject& buffer);

}  // namespace kiln::amdgpu_pm4
