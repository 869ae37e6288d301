// Two machines for tests of bundles: each a cache folder and a key file of its own, one kind of device.
#pragma once

#include "cache/bundle_format.hpp"
#include "cache/manifest.hpp"
#include "core/cache/workplace.hpp"

#include <kiln/cache_admin.hpp>

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
  std::filesystem::path bundle() const { return temporary.path() / "bundle"; }

  Result<BundleImport> import(const std::filesystem::path& file, const std::string& trust) {
    return import_cache(config, {file, trust, {device.info()}});
  }
};

}  // namespace kiln::test
