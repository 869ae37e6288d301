#include "cache/folder/key_file_place.hpp"

#include "cache/folder/open_folder.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace kiln {
namespace {

bool lies_below(const std::filesystem::path& path, const std::filesystem::path& folder) {
  const auto [in_folder, in_path] = std::ranges::mismatch(folder, path);
  return in_folder == folder.end();
}

// Links followed as far as the path exists.
std::filesystem::path resolved(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::weakly_canonical(path, error);
  return without_slash(error ? path : real);
}

}  // namespace

Status no_cache_folder() {
  return not_found(
      "no cache folder is configured (expected HOME or XDG_CACHE_HOME set to an absolute path, KILN_CACHE_DIR, or "
      "[cache] directory)");
}

Status no_key_file() {
  return not_found(
      "no key file is configured (expected HOME or XDG_STATE_HOME set to an absolute path, KILN_KEY_FILE, or [cache] "
      "key_file)");
}

Status check_key_file_place(const CacheConfig& config) {
  if (config.key_file.empty() || config.directory.empty()) return {};
  // As written, too: a link inside the folder that leads out of it can be exchanged.
  if (lies_below(without_slash(config.key_file), without_slash(config.directory)) ||
      lies_below(resolved(config.key_file), resolved(config.directory))) {
    return invalid_argument("key file " + config.key_file.string() + ": lies in the cache folder " +
                            config.directory.string() + ", expected a place outside of it");
  }
  return {};
}

}  // namespace kiln
