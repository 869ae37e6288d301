// Driver cache: checks and prepares the folder in which a driver keeps its own cache.
//
// A driver runs machine code from this folder without a check, so only this user may be able to write to it.
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

// Value of MESA_SHADER_CACHE_DIR that disables the driver's cache: no folder can be created below this path.
// MESA_SHADER_CACHE_DISABLE would also disable program binaries.
inline constexpr const char* no_driver_cache = "/proc/self/exe/";

// ok: a folder of this user with mode 0700, not a link, and only this user or root can replace it or a parent folder.
// unavailable or io: the error names the folder with the expected and the found value.
Status check_private_folder(const std::filesystem::path& folder);

// Prepares the folder named by driver_environment(). On failure, set no_driver_cache instead.
//
// Creates missing folders (0700), removes folders of ended processes, and allocates the blocks of the file that Mesa
// maps, because a write to an unallocated page on a full disk ends the process. The folder belongs to this process: the
// program cache fills it with authenticated files and removes it with the last cache of the process.
// unavailable: other users can change the folder, which is not modified. io: it cannot be created, or the disk is full.
Status prepare_driver_cache(const std::filesystem::path& folder);

// Returns the digest (64 digits) of driver build, code-changing settings and processor from a folder name chosen by
// driver_environment(). Empty: another kind of path.
std::string driver_setting_of(const std::filesystem::path& folder);

}  // namespace kiln
