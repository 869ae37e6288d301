// Assets: what every page has in common: its style, the library that draws charts, and the script that hands them over.
// They are installed as files in share/kiln/report beside bin/, so that who packages Kiln can see and replace them.
//
// Thread-safety: values. Ownership: values.
#pragma once

#include <kiln/status.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace kiln::host::page {

struct Assets {
  std::string style;
  std::vector<std::string> scripts;  // in the order in which they run
};

// Beside the running command.
std::filesystem::path assets_folder();
// unavailable: one of them is not there; the message names the file and what brings it.
Result<Assets> read_assets(const std::filesystem::path& folder);

}  // namespace kiln::host::page
