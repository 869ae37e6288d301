// The folder that a driver is given for a cache of its own: whether others can have a hand in it, and making it ready.
//
// A driver runs the machine code that it finds there without a check: who can write there can run anything as this
// user. Thread-safety: calls of the operating system, from any thread. Ownership: values.
#pragma once

#include <kiln/status.hpp>

#include <filesystem>
#include <string>

namespace kiln {

// The value of MESA_SHADER_CACHE_DIR where the driver shall keep no cache: nothing can be made below it, and Mesa finds
// that out without a word. MESA_SHADER_CACHE_DISABLE would take the program binaries away too.
inline constexpr const char* no_driver_cache = "/proc/self/exe/";

// ok: a folder and no link, of this user, that nobody else may enter (0700), and nobody but this user and root can
// exchange it or a folder above it. unavailable or io names the folder that is at fault and both sides.
Status check_private_folder(const std::filesystem::path& folder);

// What has to hold before a driver is pointed at the folder that driver_environment() names; where it does not, the
// driver gets no_driver_cache. Makes what is missing (0700), removes the folders that ended processes left beside it,
// and gives the file that Mesa maps into memory its blocks: touching a page that a full disk has no block for ends the
// process. The folder is this process's alone: the program cache fills it with authenticated files, and removes it when
// the last cache of the process is closed. unavailable: others can have a hand in the folder, which stays as it is. io:
// it cannot be made, or there is no room.
Status prepare_driver_cache(const std::filesystem::path& folder);

// The driver's build, its settings that change code, and the processor, as a digest of 64 digits: taken from the name
// of a folder that driver_environment() chose. Empty: the path is of another kind.
std::string driver_setting_of(const std::filesystem::path& folder);

}  // namespace kiln
