// ConstantStore: the Constants that are resident on one device, with their packed forms.
//
// Thread-safety: none; it belongs to the device's submit thread. Ownership: owns the device buffers, never the
// Constants: when the last Constant of a digest is gone its buffer and packed forms go with the next sweep(). A job in
// flight keeps its Constants, so nothing that a device still reads is ever swept.
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

  // The Constant's buffer, uploaded (or wrapped, where the device reads host memory) at the first call for its digest.
  Result<Buffer*> resident(const std::shared_ptr<const Constant>& constant);

  // The packed form that plan->prepare[index] makes of the Constant, or null. A packed form serves every plan that
  // names the same layout and makes it by the same source.
  Buffer* packed(const Constant& constant, const KernelPlan& plan, std::size_t index) noexcept;
  // Keeps a packed form that has been written. REQUIRES: the Constant is resident.
  void keep_packed(const Constant& constant, std::shared_ptr<const KernelPlan> plan, std::size_t index,
                   std::unique_ptr<Buffer> buffer);

  void sweep() noexcept;
  bool empty() const noexcept { return entries_.empty(); }

 private:
  struct Packed {
    std::shared_ptr<const KernelPlan> plan;  // the one that made it
    std::size_t index = 0;
    std::unique_ptr<Buffer> buffer;
  };
  struct Entry {
    // Wrapped memory outlives its buffer, also while a Constant that has just gone waits for its sweep.
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
