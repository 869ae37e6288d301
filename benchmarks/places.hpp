// Where a benchmark program finds what it works with: beside itself, where it is installed (lib/kiln/bench) as in the
// build, which has links to the sources' folders there. No path is compiled in: a package names no folder of its
// builder.
//
// Thread-safety: pure functions of the program's own place. Ownership: values.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>

namespace kiln::bench {

inline std::filesystem::path own_folder() { return std::filesystem::read_symlink("/proc/self/exe").parent_path(); }
inline bool is_installed() { return own_folder().filename() == "bench"; }

inline std::filesystem::path plugins_folder() {
  return is_installed() ? own_folder().parent_path() / "plugins"
                        : own_folder().parent_path() / "lib" / "kiln" / "plugins";
}
// The command that this program belongs to.
inline std::filesystem::path kiln_command() {
  return is_installed() ? own_folder() / ".." / ".." / ".." / "bin" / "kiln" : own_folder() / "kiln";
}
inline std::filesystem::path tables_folder() {
  return is_installed() ? own_folder() / ".." / ".." / ".." / "share" / "kiln" / "configs" : own_folder() / "configs";
}
inline std::filesystem::path traces_folder() { return own_folder() / "traces"; }

// A folder that goes with its owner. Throws std::runtime_error where it cannot be made.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(const std::string& name) {
    std::string path = (std::filesystem::temp_directory_path() / (name + "-XXXXXX")).string();
    if (mkdtemp(path.data()) == nullptr) throw std::runtime_error(path + ": cannot be made");
    path_ = path;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const noexcept { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace kiln::bench
