// RecordedWork: the Recording of this executor: submissions with buffers of their own, one per host tensor.
// DeviceTensors share memory.
//
// Thread-safety: begin() from any thread; the rest as Work. Ownership: owns its buffers; holds the device and
// everything that its submissions hold.
#pragma once

#include "executor/submitted_work.hpp"

#include <atomic>
#include <memory>

namespace kiln::executor {

class RecordedWork final : public Recording, public Work {
 public:
  // REQUIRES: check(submission).ok() for each, there is at least one, and all are for one device.
  static Result<std::shared_ptr<RecordedWork>> create(std::vector<Submission> submissions);

  std::size_t jobs() const noexcept override { return submissions_.size(); }
  const std::shared_ptr<Device>& device() const noexcept { return submissions_.front().device; }

  // false: it is already in flight. Otherwise it counts as in flight until release().
  bool begin() noexcept { return !in_flight_.exchange(true, std::memory_order_acq_rel); }

  Status make_constants(Device& device, ConstantStore& constants, const RunToEnd& run, std::uint64_t& packed) override;
  Status upload(Device& device, std::uint64_t& aside_ns) override;
  std::span<const PassLaunch> launches() override { return launches_; }
  Status readback() override;
  std::span<const std::size_t> groups() const noexcept override;
  void took(FenceResult result) override { measured.push_back(std::move(result)); }
  void release() noexcept override { in_flight_.store(false, std::memory_order_release); }
  std::string_view variant() const noexcept override { return variant_; }
  bool may_share(const Device&) const noexcept override { return false; }  // a recording has several jobs
  std::uint64_t upload_bytes(const Device&) const noexcept override { return upload_bytes_; }
  std::uint64_t readback_bytes(const Device&) const noexcept override { return readback_bytes_; }

 private:
  // A host tensor or a DeviceTensor.
  struct Tensor {
    std::shared_ptr<HostTensor> host;
    std::shared_ptr<const DeviceTensor> device;
    std::unique_ptr<Buffer> own_buffer;
    Buffer* buffer = nullptr;         // own_buffer, or the buffer of its block
    std::size_t first = 0, last = 0;  // range of submissions that use it
    bool read_first = false;          // the first submission that names it reads it
    bool read = false;
    bool written = false;
    bool poisoned = false;
  };

  explicit RecordedWork(std::vector<Submission> submissions);
  // Memory shared by several DeviceTensors.
  struct Block {
    std::uint64_t bytes = 0;
    std::vector<std::size_t> tensors;
    std::unique_ptr<Buffer> buffer;
  };

  void collect();
  Status make_buffers(Device& device);
  Status make_host_buffer(Device& device, Tensor& tensor);
  void share_blocks(bool of_any_size);
  Status make_blocks(Device& device);
  void drop_needless_waits();

  std::vector<Submission> submissions_;
  std::string variant_;
  std::vector<Tensor> tensors_;
  std::vector<std::vector<std::size_t>> tensor_at_;  // by submission and tensor of its plan; constants: unused
  std::vector<Block> blocks_;
  std::vector<std::size_t> groups_;               // launches of each submission
  std::vector<std::unique_ptr<Buffer>> scratch_;  // by index; shared, because submissions run one after another
  std::vector<BoundPlan> bound_;
  std::vector<Buffer*> bindings_;
  std::vector<PassLaunch> launches_;  // empty until the constants are bound
  std::uint64_t upload_bytes_ = 0;
  std::uint64_t readback_bytes_ = 0;
  std::atomic<bool> in_flight_{false};
};

}  // namespace kiln::executor
