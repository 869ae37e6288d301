// Key material read back: the fields that KeyEncoder encoded, and the same key under another driver identity.
//
// Thread-safety: pure. Ownership: KeyField views the material it was decoded from.
#pragma once

#include <kiln/device.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

struct KeyField {
  std::string_view name;
  std::string_view value;
  bool operator==(const KeyField&) const = default;
};

// nullopt where the bytes are no complete encoding, or hold more than 65,536 fields.
std::optional<std::vector<KeyField>> decode_key_material(std::string_view material);

// The source that key_of() took in; nullopt where the material is not one of its encodings. A library's spec is not in
// it: its source is nullopt too.
std::optional<KernelSource> source_of(std::string_view material);

// The fields by which key_of() takes in a device and its driver: "device.NAME" and "driver.NAME".
std::string device_fields(const DeviceInfo& device);
std::string driver_fields(const DeviceInfo& device);

// The material of the same source and device under the driver whose fields are given; nullopt where it cannot be
// decoded.
std::optional<std::string> with_driver(std::string_view material, std::string_view driver_fields);

}  // namespace kiln
