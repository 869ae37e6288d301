// ConstantStore: the Constants that are resident on one device, with their packed forms.
//
// Thread-safety: none; used by the device's submit thread. Ownership: owns the device buffers, but not the Constants:
// after the last Constant of a digest is destroyed, the next sweep() removes its buffer and packed forms. A job in flight
// holds its Constants, so sweep() never removes a buffer that a device reads.
#pragma once

#include <kiln/device.hpp>
#include <kiln/tensor.hpp>

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

namespace kiln::executor {

class ConstantStore {
 public:
  explicit ConstantStore(Device& device) : device_(device) {}

  // Returns the buffer of the Constant. The first call for a digest uploads it, or wraps the host memory if the device
  // reads that.
  Result<Buffer*> resident(const std::shared_ptr<const Constant>& constant);

  // Returns the packed form that plan->prepare[index] makes of the Constant, or null. Plans with the same layout and the
  // same source share a packed form.
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

}  // namespace kiln::executor
