// PacketWriter: appends dwords to room that somebody else owns, and never past its end.
//
// Thread-safety: one thread at a time. Ownership: borrows the room, which may be write-combined memory: dwords are
// written once, upwards, and never read back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace kiln::amdgpu_pm4 {

class PacketWriter {
 public:
  PacketWriter() = default;
  explicit PacketWriter(std::span<std::uint32_t> room) noexcept : room_(room) {}

  std::size_t size() const noexcept { return size_; }  // dwords written
  std::size_t left() const noexcept { return room_.size() - size_; }
  std::span<const std::uint32_t> written() const noexcept { return room_.first(size_); }

  // The next `count` dwords, which count as written: the caller writes each. nullptr where fewer are left; then nothing
  // is taken.
  std::uint32_t* take(std::size_t count) noexcept {
    if (count > left()) return nullptr;
    std::uint32_t* at = room_.data() + size_;
    size_ += count;
    return at;
  }

 private:
  std::span<std::uint32_t> room_;
  std::size_t size_ = 0;
};

}  // namespace kiln::amdgpu_pm4
