// CommandBuffer: dwords that a command processor is given, where it finds them and where the host reads them.
//
// Thread-safety: value. Ownership: borrows the dwords.
#pragma once

#include <cstdint>
#include <span>

namespace kiln::amdgpu_pm4 {

struct CommandBuffer {
  std::uint64_t va = 0;
  std::span<const std::uint32_t> dwords;  // REQUIRES: memory that is cheap to read, so not write-combined
};

// Addresses are 48 bits, their top bit repeated above. Fields of packets and registers may leave those copies out.
constexpr std::uint64_t canonical(std::uint64_t address) noexcept {
  constexpr std::uint64_t top = std::uint64_t{1} << 47;
  return ((address & (2 * top - 1)) ^ top) - top;
}

}  // namespace kiln::amdgpu_pm4
