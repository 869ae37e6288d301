// Names and the manifest of a device folder: who this device and driver are, for people, for tools, and for telling
// that a program is held under another driver.
//
// Thread-safety: pure. Ownership: values. A lost or false manifest costs a reason in the statistics, never a program
// and never safety: nothing that it says is handed to a driver.
#pragma once

#include <kiln/device.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace kiln {

inline constexpr std::uint64_t most_manifest_bytes = 64 << 10;

inline constexpr const char* manifest_name = "manifest.json";

// WORDS-DEVICE-DRIVER: 1 to 40 characters of [a-z0-9_], then 16 hexadecimal digits of each identity's digest.
std::string device_folder_name(const DeviceInfo& device);
// Safe for a name that a stranger wrote: what it accepts is one part of a path.
bool is_device_folder_name(std::string_view name) noexcept;
// REQUIRES: is_device_folder_name of both. Same device, another driver.
bool differ_in_driver_only(std::string_view name, std::string_view other) noexcept;

std::string encode_manifest(const DeviceInfo& device);
// The driver's fields as key_material.hpp encodes them; nullopt where the text is no manifest.
std::optional<std::string> driver_fields_of_manifest(std::string_view json);

struct ManifestWords {  // for people; empty where the manifest does not say it
  std::string device, kind, driver;
};
ManifestWords words_of_manifest(std::string_view json);

}  // namespace kiln
