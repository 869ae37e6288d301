// SubmittedWork: one submission with the device buffers of its slot, which are used again by the slot's later jobs.
//
// Thread-safety and ownership: as Work; between jobs it keeps the buffers for the next one.
#pragma once

#include "executor/stages/buffer_pool.hpp"
#include "executor/stages/work.hpp"

#include <memory>

namespace kiln::executor {

class SubmittedWork final : public Work {
 public:
  // REQUIRES: check(submission).ok(), and the work is released.
  void accept(Submission submission) { submission_ = std::move(submission); }
  void drop_buffers() noexcept { pool_.clear(); }

  Status make_constants(Device& device, ConstantStore& constants, const RunToEnd& run, std::uint64_t& packed) override;
  Status upload(Device& device, std::uint64_t& aside_ns) override;
  std::span<const PassLaunch> launches() override;
  Status readback() override;
  void release() noexcept override;
  std::string_view variant() const noexcept override { return submission_.plan->variant; }
  bool may_share(const Device& device) const noexcept override;
  std::uint64_t upload_bytes(const Device& device) const noexcept override;
  std::uint64_t readback_bytes(const Device& device) const noexcept override;

 private:
  Status bind(Device& device, std::size_t tensor, std::uint64_t& aside_ns);

  Submission submission_;
  BufferPool pool_;
  BoundPlan bound_;
  std::vector<std::unique_ptr<Buffer>> wrappers_;  // where the device works in the tensor's own memory
  std::vector<Buffer*> bindings_;                  // of all passes, one after the other
  std::vector<PassLaunch> launches_;
};

}  // namespace kiln::executor
