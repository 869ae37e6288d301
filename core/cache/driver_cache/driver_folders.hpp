// The drivers' own caches that were placed below a cache folder: driver/<64 digits>/, one a driver and setting.
//
// What lies in one is the driver's: it is counted and removed as a whole, never looked into. Beside it stands
// `devices`, Kiln's note of the device folders that were served with it: one empty file each. Thread-safety: pure calls
// of the operating system. Ownership: values.
#pragma once

#include <kiln/status.hpp>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

inline constexpr const char* driver_caches_name = "driver";
inline constexpr const char* served_devices_name = "devices";

struct DriverFolder {
  std::string name;
  std::uint64_t files = 0, bytes = 0;
  std::int64_t last_used_ns = 0;     // since 1970: the latest time of the folder and of what is in it
  std::vector<std::string> devices;  // names of device folders, also of those that are gone
};

bool is_driver_folder_name(std::string_view name) noexcept;

std::vector<DriverFolder> driver_folders(int root);
// Whether its driver is gone as far as can be told: of the device folders that it served none is among `devices`, and
// nobody has used it for a day. now_ns: since 1970.
bool serves_nobody(const DriverFolder& folder, const std::set<std::string>& devices, std::int64_t now_ns);
// With everything in it; answers the first thing that could not be removed.
Status remove_driver_folder(int root, const std::string& name);

// Notes that the device folder was served with the driver's cache of that name. Failing costs nothing but the note.
void note_served(int root, const std::string& name, const std::string& device_folder);

// The driver's cache that this process was told to use (MESA_SHADER_CACHE_DIR), where it lies below `root`.
std::optional<std::string> driver_folder_in_use(int root);
// Notes that the device folder was served with it, now. Failing costs nothing but the note.
void note_driver_folder(int root, const std::string& device_folder);

}  // namespace kiln
