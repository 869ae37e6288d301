// Finds a plugin's file: NAME.so in the first folder of the path that has it.
//
// Thread-safety: any thread; reads folders.
#pragma once

#include <kiln/status.hpp>

#include <filesystem>
#include <span>
#include <string>

namespace kiln {

// invalid_argument: not a plugin name. not_found: the error lists each folder with the reason. Relative folders are
// ignored.
Result<std::filesystem::path> find_plugin(const std::string& name, std::span<const std::filesystem::path> folders);

}  // namespace kiln
