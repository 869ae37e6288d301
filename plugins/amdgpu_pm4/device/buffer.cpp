#include "amdgpu_pm4/device/buffer.hpp"

#include <cstring>

#include "amdgpu_pm4/winsys/winsys.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

BufferUse use_of(BufferUsage usage) {
  switch (usage) {
    case BufferUsage::upload:
      return BufferUse::upload;
    case BufferUsage::readback:
      return BufferUse::readback;
    case BufferUsage::constant:
      return BufferUse::constant;
    default:
      return BufferUse::storage;
  }
}

std::string words(std::uint64_t bytes) { return std::to_string(bytes) + " bytes"; }

}  // namespace

Result<std::unique_ptr<Buffer>> Pm4Buffer::create(const std::string& device, Winsys& winsys, const BufferDesc& desc) {
  if (desc.import_fd >= 0) {
    // What others share is written by either side.
    auto object = winsys.import_buffer(desc.import_fd, GpuAccess::read_write);
    if (!object) return std::move(object).error().within(device);
    if ((*object)->bytes() < desc.bytes) {
      return invalid_argument(device + ": the imported memory has " + words((*object)->bytes()) + ", expected " +
                              words(desc.bytes));
    }
    return std::unique_ptr<Buffer>(std::make_unique<Pm4Buffer>(device, winsys, std::move(object).value(), desc.bytes));
  }
  if (desc.part_of != nullptr) {
    const auto& whole = static_cast<const Pm4Buffer&>(*desc.part_of);
    if (whole.owner_ != &winsys || desc.bytes > whole.bytes_) {
      return invalid_argument(device + ": a part of " + words(desc.bytes) + " of a buffer of " + words(whole.bytes_) +
                              ", expected one for storage of this device");
    }
    return std::unique_ptr<Buffer>(std::make_unique<Pm4Buffer>(device, winsys, whole.object_, desc.bytes));
  }
  const BufferUse use = use_of(desc.usage);
  const MemoryFacts& memory = winsys.facts().memory;
  if (const std::uint64_t most = most_bytes(use, memory); desc.bytes > most) {
    return invalid_argument(device + ": a buffer of " + words(desc.bytes) + ", the most is " + words(most));
  }
  auto object = winsys.create_buffer({desc.bytes, 0, placement_of(use, memory), access_of(use)});
  if (!object) return std::move(object).error().within(device);
  return std::unique_ptr<Buffer>(std::make_unique<Pm4Buffer>(device, winsys, std::move(object).value(), desc.bytes));
}

Status Pm4Buffer::check(std::string_view doing, std::uint64_t offset, std::size_t bytes) const {
  if (offset > bytes_ || bytes > bytes_ - offset) {
    return invalid_argument(device_ + ": " + std::string(doing) + " " + words(bytes) + " at offset " +
                            std::to_string(offset) + " of a buffer of " + words(bytes_));
  }
  if (bytes != 0 && object_->mapped().empty()) {
    return unsupported(device_ + ": " + std::string(doing) + " imported memory that has no mapping for the host");
  }
  return {};
}

Status Pm4Buffer::write(std::uint64_t offset, std::span<const std::byte> from) noexcept try {
  if (Status status = check("writing", offset, from.size()); !status.ok() || from.empty()) return status;
  std::memcpy(object_->mapped().data() + offset, from.data(), from.size());
  return {};
} catch (...) {
  return caught();
}

Status Pm4Buffer::read(std::uint64_t offset, std::span<std::byte> to) noexcept try {
  if (Status status = check("reading", offset, to.size()); !status.ok() || to.empty()) return status;
  std::memcpy(to.data(), object_->mapped().data() + offset, to.size());
  return {};
} catch (...) {
  return caught();
}

std::span<std::byte> Pm4Buffer::mapped() noexcept {
  const std::span<std::byte> memory = object_->mapped();
  return memory.empty() ? memory : memory.first(static_cast<std::size_t>(bytes_));
}

Result<UniqueFd> Pm4Buffer::export_fd() noexcept {
  auto fd = object_->export_fd();
  if (!fd) return std::move(fd).error().within(device_);
  return fd;
}

}  // namespace kiln::amdgpu_pm4
