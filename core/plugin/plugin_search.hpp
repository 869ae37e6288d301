// Where a plugin's file lies: the first folder of the path that has NAME.so.
//
// Thread-safety: pure but for reading folders.
#pragma once

#include <kiln/status.hpp>

#include <filesystem>
#include <span>
#include <string>

namespace kiln {

// invalid_argument: a name that is no file name of a plugin. not_found, naming every folder and what is wrong with it.
// An entry of the path that is not absolute is never looked into.
Result<std::filesystem::path> find_plugin(const std::string& name, std::span<const std::filesystem::path> folders);

}  // namespace kiln
