// Work: the job of a slot: one submission, or a recording of several.
//
// Stages, in this order: make_constants → upload → launches → (the device runs) → readback → release.
// Thread-safety: none; one lane at a time uses it. Ownership: as kiln::Submission, until release().
#pragma once

#include "executor/buffers.hpp"

#include <kiln/executor.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace kiln::executor {

class Work {
 public:
  Work() = default;
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
  virtual ~Work() = default;

  // Makes the job's Constants resident and makes missing packed forms with `run`; `packed` counts these.
  virtual Status make_constants(Device& device, ConstantStore& constants, const RunToEnd& run,
                                std::uint64_t& packed) = 0;
  // aside_ns: time for verification, which does not count as the job's: the upload of NaN to outputs.
  virtual Status upload(Device& device, std::uint64_t& aside_ns) = 0;
  // Valid until release().
  virtual std::span<const PassLaunch> launches() = 0;
  virtual Status readback() = 0;
  // REQUIRES: the device has finished with the job, or is lost.
  virtual void release() noexcept = 0;

  // Not empty: launches are submitted in groups of these sizes, one after another, and took() gets what each took.
  virtual std::span<const std::size_t> groups() const noexcept { return {}; }
  virtual void took(FenceResult result) { (void)result; }

  virtual std::string_view variant() const noexcept = 0;
  // Whether it may share a submission with neighbours: if that fails, the job is repeated, so its inputs must be
  // unchanged.
  virtual bool may_share(const Device&) const noexcept = 0;
  // Bytes to copy; 0 if the device works in the tensors' own memory.
  virtual std::uint64_t upload_bytes(const Device& device) const noexcept = 0;
  virtual std::uint64_t readback_bytes(const Device& device) const noexcept = 0;
};

// SubmittedWork: one submission with the device buffers of its slot, which later jobs of the slot reuse.
//
// Thread-safety and ownership: as Work; it retains the buffers between jobs.
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
  std::vector<std::unique_ptr<Buffer>> wrappers_;  // if the device works in the tensor's own memory
  std::vector<Buffer*> bindings_;                  // of all passes, one after the other
  std::vector<PassLaunch> launches_;
};

// check: whether a Submission matches its plan. Called before any part of it is used.
//
// Thread-safety: pure. An error names the plan and the object, with the expected and the found value.

// invalid_argument: the caller's values do not match. internal: the plan contradicts itself.
enum class Use : unsigned char { invalid = 0, submit, record };
Status check(const Submission& submission, Use use);

// RecordedWork: the Recording of this executor: submissions with buffers of their own, one per host tensor.
// DeviceTensors share memory.
//
// Thread-safety: begin() from any thread; the rest as Work. Ownership: owns its buffers; holds the device and
// everything that its submissions hold.

class RecordedWork final : public Recording, public Work {
 public:
  // REQUIRES: check(submission).ok() for each, there is at least one, and all are for one device.
  static Result<std::shared_ptr<RecordedWork>> create(std::vector<Submission> submissions);

  std::size_t jobs() const noexcept override { return submissions_.size(); }
  bool in_flight() const noexcept override { return in_flight_.load(std::memory_order_acquire); }
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
  std::vector<Block> blocks_;  // outlive the tensors that are parts of them
  std::vector<Tensor> tensors_;
  std::vector<std::vector<std::size_t>> tensor_at_;  // by submission and tensor of its plan; constants: unused
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
