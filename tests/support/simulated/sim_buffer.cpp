#include "support/simulated/sim_buffer.hpp"

#include <cstring>

namespace kiln::support {

SimBuffer::SimBuffer(SimDevice& device, const BufferDesc& desc)
    : device_(device),
      own_((desc.bytes + sizeof(Line) - 1) / sizeof(Line)),
      memory_(reinterpret_cast<std::byte*>(own_.data()), static_cast<std::size_t>(desc.bytes)) {}

SimBuffer::~SimBuffer() {
  const std::lock_guard lock(device_.mutex_);
  device_.held_ -= memory_.size();
}

Status SimBuffer::check(const char* what, std::uint64_t offset, std::size_t count) const {
  if (offset <= memory_.size() && count <= memory_.size() - offset) return {};
  return invalid_argument(device_.info().id + ": " + what + " of " + std::to_string(count) + " bytes at " +
                          std::to_string(offset) + " leaves a buffer of " + std::to_string(memory_.size()) + " bytes");
}

Status SimBuffer::write(std::uint64_t offset, std::span<const std::byte> from) noexcept {
  if (Status status = check("write", offset, from.size()); !status.ok() || from.empty()) return status;
  if (Status status = device_.transfer(SimDevice::Engine::upload, from.size()); !status.ok()) return status;
  std::memcpy(memory_.data() + offset, from.data(), from.size());
  return {};
}

Status SimBuffer::read(std::uint64_t offset, std::span<std::byte> to) noexcept {
  if (Status status = check("read", offset, to.size()); !status.ok() || to.empty()) return status;
  if (Status status = device_.transfer(SimDevice::Engine::readback, to.size()); !status.ok()) return status;
  std::memcpy(to.data(), memory_.data() + offset, to.size());
  return {};
}

std::span<std::byte> SimBuffer::mapped() noexcept { return device_.options_.maps ? memory_ : std::span<std::byte>(); }

Result<UniqueFd> SimBuffer::export_fd() noexcept {
  return unsupported(device_.info().id + ": its memory has no descriptor to export");
}

}  // namespace kiln::support
