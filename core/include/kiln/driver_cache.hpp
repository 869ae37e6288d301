// Driver cache: checks and prepares the folder of a driver's own cache.
//
// A driver runs machine code from this folder without a check, so no other user may have write access to the folder.
// Thread-safety: functions from any thread. Ownership: values.
//
//   for (const auto& [name, value] : kiln::driver_environment(config)) {
//     const bool unfit = name == "MESA_SHADER_CACHE_DIR" && !kiln::prepare_driver_cache(value).ok();
//     setenv(name.c_str(), unfit ? kiln::no_driver_cache : value.c_str(), 1);
//   }
#pragma once

#include <kiln/status.hpp>

#include <filesystem>
#include <string>

namespace [[gnu::visibility("default")]] kiln {

// Value of MESA_SHADER_CACHE_DIR that disables the driver's cache, because no folder can be created below this path.
// MESA_SHADER_CACHE_DISABLE would also disable program binaries.
inline constexpr const char* no_driver_cache = "/proc/self/exe/";

// ok: a folder of this user with mode 0700, not a link, and only this user or root can replace it or a parent folder.
// unavailable or io: the error names the folder with the expected and the found value.
Status check_private_folder(const std::filesystem::path& folder);

// Prepares the folder named by driver_environment(). On failure, set no_driver_cache instead.
//
// Creates missing folders (0700) and removes folders of ended processes. Allocates the blocks of the file that Mesa maps,
// because a write to an unallocated page on a full disk ends the process. Only this process uses the folder: the program
// cache fills it with authenticated files, and the last cache of the process removes it.
// unavailable: other users can change the folder; the function did not change it. io: the folder cannot be created, or the
// disk is full.
Status prepare_driver_cache(const std::filesystem::path& folder);

// Returns the digest (64 digits) of driver build, code-changing settings and processor, from a folder name that
// driver_environment() returned. Empty: another path.
std::string driver_setting_of(const std::filesystem::path& folder);

}  // namespace kiln
