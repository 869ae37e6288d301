// Device folder names and manifests: which device and driver a folder belongs to.
//
// The manifest serves diagnostics and detects programs stored under another driver. It is not trusted and never passed
// to a driver; a lost or false one only affects the reported miss reason.
// Thread-safety: pure. Ownership: values.
#pragma once

#include <kiln/device.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

// EntryMeta: metadata of a stored program, in the JSON file beside it, and the load order computed from it.
//
// Not authenticated and not required: a lost or damaged file is created again.
// Thread-safety: functions are pure. Ownership: values.

struct EntryMeta {
  std::string key;  // hexadecimal digest, equal to the file name
  std::string label;
  // As in ProgramPurpose; empty if unknown.
  std::string operation, shape, variant;
  double build_ms = 0;
  double first_dispatch_ms = 0;  // longest of any process; 0: not measured
  double load_ms = 0;            // latest load from disk, with linking; 0: not measured
  double warm_dispatch_ms = 0;   // shortest first dispatch of any process; 0: not measured
  double gflops = 0;             // latest measurement of later dispatches; 0: not measured
  // Acquisitions from any tier. Memory hits between two insertions into the memory tier count once.
  std::uint64_t times_used = 0;
  std::int64_t last_used = 0;  // seconds since 1970
  std::uint64_t runs = 0;      // number of processes that used it
  // Time from opening the cache to the first request for the program. Average over processes in which the newest has
  // weight 1/4; 0: not measured.
  double first_use_ms = 0;
};

std::string encode_meta(const EntryMeta& meta);
// nullopt: the text is not a JSON object. Members that are missing or of another type keep their default.
std::optional<EntryMeta> decode_meta(std::string_view json);

// Returns the expected time, in ms, that preloading each program saves a process. One value per program of one device,
// in their order.
// Value = wait x share of processes that used the program x earliness. The wait is the load time plus the first
// dispatch with cached driver code. For programs never loaded, it is estimated from the ratio of other programs.
// Earliness is 1/2 for a first request two seconds after the start.
std::vector<double> expected_stalls(std::span<const EntryMeta> programs);

}  // namespace kiln
