// Pm4Buffer: device memory of one device, mapped for the host for good where it can be.
//
// Thread-safety: any thread. Ownership: shares the buffer object with the submissions in flight that list it.
#pragma once

#include <kiln/buffer.hpp>

#include <memory>
#include <string>

#include "amdgpu_pm4/winsys/winsys.hpp"

namespace kiln::amdgpu_pm4 {

class Pm4Buffer final : public Buffer {
 public:
  // `owner`: the device, by its id and its winsys. REQUIRES: bytes <= object->bytes().
  Pm4Buffer(std::string device, const Winsys& owner, std::shared_ptr<BufferObject> object, std::uint64_t bytes)
      : device_(std::move(device)), owner_(&owner), object_(std::move(object)), bytes_(bytes) {}

  // desc is checked: 0 < bytes, a usage, no host memory.
  static Result<std::unique_ptr<Buffer>> create(const std::string& device, Winsys& winsys, const BufferDesc& desc);

  std::uint64_t bytes() const noexcept override { return bytes_; }
  Status write(std::uint64_t offset, std::span<const std::byte> from) noexcept override;
  Status read(std::uint64_t offset, std::span<std::byte> to) noexcept override;
  std::span<std::byte> mapped() noexcept override;
  Result<UniqueFd> export_fd() noexcept override;

  const Winsys* owner() const noexcept { return owner_; }
  const std::shared_ptr<BufferObject>& object() const noexcept { return object_; }

 private:
  Status check(std::string_view doing, std::uint64_t offset, std::size_t bytes) const;

  std::string device_;
  const Winsys* owner_;
  std::shared_ptr<BufferObject> object_;
  std::uint64_t bytes_;
};

}  // namespace kiln::amdgpu_pm4
