// The device buffers of jobs: the pool of a slot, resident Constants, and the bindings of a plan.
//
// BufferPool: the device buffers of one slot, created on demand and reused by later jobs.
//
// A buffer has exactly the requested size: a program may query the length of a bound buffer, and a driver may compile
// again for another size.
// Thread-safety: none; one thread at a time. Ownership: owns the buffers; destroy it before their device.
#pragma once

#include <kiln/device.hpp>
#include <kiln/executor.hpp>
#include <kiln/tensor.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

namespace kiln::executor {

class BufferPool {
 public:
  // Returns a buffer for exclusive use until recycle(). Its contents are undefined.
  Result<Buffer*> take(Device& device, BufferUsage usage, std::uint64_t bytes);

  // Ends the job: all buffers may be reused. Retains those of this job and a bounded number of the others, the most
  // recently used first, so that a repeated job allocates nothing.
  void recycle() noexcept;
  void clear() noexcept { entries_.clear(); }

 private:
  struct Entry {
    std::unique_ptr<Buffer> buffer;
    BufferUsage usage = BufferUsage::invalid;
    std::uint64_t last_job = 0;
    bool taken = false;
  };

  std::vector<Entry> entries_;
  std::uint64_t job_ = 1;
};

// ConstantStore: the Constants that are resident on one device, with their packed forms.
//
// Thread-safety: none; used by the device's submit thread. Ownership: owns the device buffers, but not the Constants:
// after the last Constant of a digest is destroyed, the next sweep() removes its buffer and packed forms. A job in
// flight holds its Constants, so sweep() never removes a buffer that a device reads.

class ConstantStore {
 public:
  explicit ConstantStore(Device& device) : device_(device) {}

  // Returns the buffer of the Constant. The first call for a digest uploads it, or wraps the host memory if the device
  // reads that.
  Result<Buffer*> resident(const std::shared_ptr<const Constant>& constant);

  // Returns the packed form that plan->prepare[index] makes of the Constant, or null. Plans with the same layout and
  // the same source share a packed form.
  Buffer* packed(const Constant& constant, const KernelPlan& plan, std::size_t index) noexcept;
  // Stores a packed form after it was written. REQUIRES: the Constant is resident.
  void keep_packed(const Constant& constant, std::shared_ptr<const KernelPlan> plan, std::size_t index,
                   std::unique_ptr<Buffer> buffer);

  void sweep() noexcept;
  bool empty() const noexcept { return entries_.empty(); }

 private:
  struct Packed {
    std::shared_ptr<const KernelPlan> plan;  // the plan that made it
    std::size_t index = 0;
    std::unique_ptr<Buffer> buffer;
  };
  struct Entry {
    // Wrapped memory must outlive its buffer, also between the end of the Constant and the next sweep().
    std::shared_ptr<const HostTensor> wrapped;
    std::unique_ptr<Buffer> buffer;
    std::vector<Packed> packed;
    std::vector<std::weak_ptr<const Constant>> holders;
  };

  Result<Entry> upload(const Constant& constant);

  Device& device_;
  std::unordered_map<Digest, Entry, DigestHash> entries_;
};

// BoundPlan: the device buffers of a plan's bindings, with its Constants.
//
// Thread-safety: none. Ownership: borrows the buffers.

// Runs a dispatch and returns after its end.
using RunToEnd = std::function<Status(const Dispatch&)>;

constexpr bool is_uploaded(TensorRole role) noexcept { return role == TensorRole::input || role == TensorRole::inout; }
constexpr bool is_read_back(TensorRole role) noexcept {
  return role == TensorRole::output || role == TensorRole::inout;
}
// inout tensors are copied in both directions, so neither kind of staging memory is suitable.
constexpr BufferUsage usage_of(TensorRole role) noexcept {
  if (role == TensorRole::input) return BufferUsage::upload;
  return role == TensorRole::output ? BufferUsage::readback : BufferUsage::storage;
}

Status copy_in(Buffer& to, std::span<const std::byte> from);
Status copy_out(Buffer& from, std::span<std::byte> to);

struct BoundPlan {
  std::vector<Buffer*> tensors, scratch, prepared, constants;

  Buffer* of(const Binding& binding) const noexcept;
  void clear() noexcept;
};

// Sets the constants in bound.tensors and bound.constants, and the packed forms in bound.prepared. Missing packed forms
// are made with `run`; `packed` counts them. REQUIRES: check(submission).ok().
Status bind_constants(const Submission& submission, BoundPlan& bound, Device& device, ConstantStore& constants,
                      const RunToEnd& run, std::uint64_t& packed);

// Appends the buffers that each pass binds, pass after pass.
void append_bindings(const std::vector<Pass>& passes, const BoundPlan& bound, std::vector<Buffer*>& to);
// Appends one launch per pass of the submission. Removes its bindings from the front of `bindings`.
void append_launches(const Submission& submission, std::span<Buffer* const>& bindings, std::vector<PassLaunch>& to);

}  // namespace kiln::executor
