// Device folder names and manifests: which device and driver a folder belongs to.
//
// The manifest serves diagnostics and detects programs stored under another driver. It is not trusted and never passed
// to a driver; a lost or false one only affects the reported miss reason.
// Thread-safety: pure. Ownership: values.
#pragma once

#include <kiln/device.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace kiln {

inline constexpr std::uint64_t most_manifest_bytes = 64 << 10;

inline constexpr const char* manifest_name = "manifest.json";

// NAME-DEVICE-DRIVER: 1 to 40 characters of [a-z0-9_], then 16 hexadecimal digits of the digest of each identity.
std::string device_folder_name(const DeviceInfo& device);
// Safe for untrusted names: an accepted name is a single path component.
bool is_device_folder_name(std::string_view name) noexcept;
// Returns whether both names have the same device and different drivers. REQUIRES: is_device_folder_name() of both.
bool differ_in_driver_only(std::string_view name, std::string_view other) noexcept;

std::string encode_manifest(const DeviceInfo& device);
// Returns the driver fields, encoded as in key_material.hpp. nullopt: the text is not a manifest.
std::optional<std::string> driver_fields_of_manifest(std::string_view json);

struct ManifestWords {  // display names; empty if not in the manifest
  std::string device, kind, driver;
};
ManifestWords words_of_manifest(std::string_view json);

}  // namespace kiln
