// Appends and reads little-endian integers.
//
// Thread-safety: pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/device.hpp>

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

// Key material: what the fields of a key say, and the same key for another driver.
//
// Thread-safety: pure. Ownership: values.

// Returns the source encoded by key_of(). Of a program of the C interface: a source of dialect library with nothing
// else, since its callbacks compile it. nullopt: not such an encoding, or the source is a library's (its spec is not
// encoded).
std::optional<KernelSource> source_of(std::string_view material);

// Returns the fields of a device and its driver as key_of() encodes them: "device.NAME" and "driver.NAME".
std::string device_fields(const DeviceInfo& device);
std::string driver_fields(const DeviceInfo& device);

// Returns the same material with the given driver fields; nullopt if it cannot be decoded.
std::optional<std::string> with_driver(std::string_view material, std::string_view driver_fields);

}  // namespace kiln
