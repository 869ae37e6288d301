// A cache filled without a device: what the verbs of `kiln cache` are shown in tests, the same to the byte each time.
// Thread-safety: none. Ownership: the folder is the test's.
#pragma once

#include "host/kiln_process.hpp"

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

namespace kiln::test {

struct StoredCache {
  std::filesystem::path directory;
  std::filesystem::path key_file;

  // Below the folder; nothing is made yet.
  explicit StoredCache(const TemporaryFolder& folder)
      : directory(folder / "the cache"), key_file(folder / "state/key") {}

  // Programs labelled "layer NAME/direct", built by a device that is named with its driver's version.
  void build(const std::vector<std::string>& names, const std::string& driver = "1.0");
  // The .meta and the age that a program has from now on.
  void describe(const std::string& name, double build_ms, std::uint64_t times_used, std::chrono::seconds age,
                const std::string& driver = "1.0");
  std::string key_of(const std::string& name, const std::string& driver = "1.0") const;
  std::filesystem::path file_of(const std::string& name, const std::string& driver = "1.0") const;

  // `kiln cache WORDS`, on this cache.
  Finished kiln_cache(std::vector<std::string> words, ProcessOptions options = {}) const;
  // What it printed, the cache's path written as DIR.
  std::string plain(std::string text) const;
};

std::string golden_cache_text(const std::string& name);

}  // namespace kiln::test
