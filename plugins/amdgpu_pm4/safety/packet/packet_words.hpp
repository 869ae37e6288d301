// What the checks of packets have in common: the words of a body, and what is said of one that is wrong.
//
// Thread-safety: functions of their arguments alone.
#pragma once

#include <kiln/status.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace kiln::amdgpu_pm4 {

// As written: canonical() completes it.
inline std::uint64_t address_at(std::span<const std::uint32_t> body, std::size_t low) {
  return std::uint64_t{body[low + 1]} << 32 | body[low];
}

// An address's upper half may leave out the copies of bit 47, but hold nothing else.
bool is_address(std::uint64_t address);

// invalid_argument: a dword of the packet, counted from its header, has a value that it may not have.
Status wrong_word(std::size_t dword, std::string_view name, std::uint32_t is, std::string_view expected);

Status check_aligned(std::uint64_t va, std::uint64_t alignment, std::string_view what);

}  // namespace kiln::amdgpu_pm4
