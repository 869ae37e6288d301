// copied_fixture: a fixture's plugin in a folder that nobody else can change, as the loader demands.
//
// Thread-safety: a pure function. Ownership: the copy is the caller's.
#pragma once

#include <filesystem>
#include <string>

namespace kiln::test {

// Copies the plugin into `folder`/plugins and returns the path of the copy.
inline std::filesystem::path copied_fixture(const std::string& plugin, const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  const fs::path copy = folder / "plugins" / (plugin + ".so");
  fs::create_directories(copy.parent_path());
  fs::permissions(copy.parent_path(), fs::perms(0755));
  fs::copy_file(fs::path(KILN_BINARY_DIR) / "tests" / "fixtures" / copy.filename(), copy);
  fs::permissions(copy, fs::perms(0644));
  return copy;
}

}  // namespace kiln::test
