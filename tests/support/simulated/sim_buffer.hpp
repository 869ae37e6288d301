// SimBuffer: memory of a simulated device; moving bytes in and out takes the time that the model says.
//
// Thread-safety and ownership: as Buffer.
#pragma once

#include "support/simulated/sim_device.hpp"

#include <vector>

namespace kiln::support {

class SimBuffer final : public Buffer {
 public:
  SimBuffer(SimDevice& device, const BufferDesc& desc);
  ~SimBuffer() override;

  const SimDevice& device() const noexcept { return device_; }
  std::span<std::byte> memory() noexcept { return memory_; }

  std::uint64_t bytes() const noexcept override { return memory_.size(); }
  Status write(std::uint64_t offset, std::span<const std::byte> from) noexcept override;
  Status read(std::uint64_t offset, std::span<std::byte> to) noexcept override;
  std::span<std::byte> mapped() noexcept override;
  Result<UniqueFd> export_fd() noexcept override;

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  Status check(const char* what, std::uint64_t offset, std::size_t count) const;

  SimDevice& device_;
  std::vector<Line> own_;
  std::span<std::byte> memory_;
};

}  // namespace kiln::support
