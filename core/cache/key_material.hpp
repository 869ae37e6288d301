// Key material: what the fields of a key say, and the same key for another driver.
//
// Thread-safety: pure. Ownership: values.
#pragma once

#include <kiln/device.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

// Returns the source encoded by key_of(). Of a program of the C interface: a source of dialect library with nothing else,
// since its callbacks compile it. nullopt: not such an encoding, or the source is a library's (its spec is not encoded).
std::optional<KernelSource> source_of(std::string_view material);

// Returns the fields of a device and its driver as key_of() encodes them: "device.NAME" and "driver.NAME".
std::string device_fields(const DeviceInfo& device);
std::string driver_fields(const DeviceInfo& device);

// Returns the same material with the given driver fields; nullopt if it cannot be decoded.
std::optional<std::string> with_driver(std::string_view material, std::string_view driver_fields);

}  // namespace kiln
