// Appends and reads little-endian integers.
//
// Thread-safety: pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace kiln {

template <class Integer>
void append_little_endian(std::vector<std::byte>& to, Integer value) {
  for (std::size_t byte = 0; byte < sizeof value; ++byte) {
    to.push_back(static_cast<std::byte>(static_cast<std::uint8_t>(value >> (8 * byte))));
  }
}

// REQUIRES: at + sizeof(Integer) <= from.size().
template <class Integer>
Integer read_little_endian(std::span<const std::byte> from, std::size_t at) noexcept {
  Integer value = 0;
  for (std::size_t byte = 0; byte < sizeof value; ++byte) {
    value = static_cast<Integer>(value | static_cast<Integer>(static_cast<Integer>(from[at + byte]) << (8 * byte)));
  }
  return value;
}

}  // namespace kiln
