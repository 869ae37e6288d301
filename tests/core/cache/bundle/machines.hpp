// Two machines for tests of bundles: each a cache folder and a key file of its own, one kind of device.
#pragma once

#include "cache/bundle/bundle_format.hpp"
#include "cache/driver_cache/driver_folders.hpp"
#include "cache/format/manifest.hpp"
#include "core/cache/workplace.hpp"

#include <kiln/cache_admin.hpp>

#include <fcntl.h>

#include <string>
#include <vector>

namespace kiln::test {

struct Machine : Workplace {
  SyntheticDevice device;

  std::string key() const { return *bundle_public_key(config); }
  void build(const std::vector<std::string>& texts) {
    const auto cache = open();
    for (const std::string& text : texts) {
      if (!acquire(*cache, text, device)) throw std::runtime_error("not built: " + text);
    }
  }
  // A file of the driver's own cache `name`, which served this machine's device.
  void keep_driver_file(const std::string& name, const std::string& path, const std::string& text) {
    const auto all = config.directory / "driver";
    const auto cache = all / name;
    const auto file = cache / path;
    std::filesystem::create_directories(file.parent_path());
    for (const auto& folder : {all, cache}) std::filesystem::permissions(folder, std::filesystem::perms::owner_all);
    std::ofstream(file, std::ios::binary) << text;
    UniqueFd root(::open(config.directory.c_str(), O_RDONLY | O_DIRECTORY));
    note_served(root.get(), name, device_folder_name(device.info()));
  }
  std::filesystem::path driver_file(const std::string& name, const std::string& path) const {
    return config.directory / "driver" / name / path;
  }
  std::filesystem::path bundle() const { return temporary.path() / "bundle"; }

  Result<BundleImport> import(const std::filesystem::path& file, const std::string& trust,
                              const std::string& driver_cache = {}) {
    return import_cache(config, {file, trust, {device.info()}, driver_cache});
  }
};

inline std::string text_in(const std::filesystem::path& path) {
  const auto bytes = contents(path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace kiln::test
