// FixtureBuffer: host memory of the fixture device, its own, the caller's, or memory behind a descriptor.
//
// Thread-safety and ownership: as Buffer.
#pragma once

#include <kiln/buffer.hpp>

#include "support/fixture_memory.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace kiln::support {

class FixtureBuffer final : public Buffer {
 public:
  // Memory of its own (zeroed) where desc.host is empty.
  FixtureBuffer(const BufferDesc& desc, bool mapped, std::shared_ptr<std::atomic<std::int64_t>> live);
  FixtureBuffer(FixtureMemory shared, bool mapped, std::shared_ptr<std::atomic<std::int64_t>> live);
  ~FixtureBuffer() override;

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

  std::vector<Line> own_;
  std::optional<FixtureMemory> shared_;
  std::span<std::byte> memory_;
  bool mapped_;
  std::shared_ptr<std::atomic<std::int64_t>> live_;
};

}  // namespace kiln::support
