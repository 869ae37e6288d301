// Workplace: a temporary folder with a cache, its key file and its log, for one test; and small words for requests.
//
// Thread-safety: none but that of the cache. Ownership: removes its folder.
#pragma once

#include "cache/tiered_cache.hpp"
#include "core/cache/copied_bytes.hpp"
#include "core/cache/synthetic_device.hpp"

#include <stdlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

namespace kiln::test {

class CacheTestFolder {
 public:
  explicit CacheTestFolder(const std::filesystem::path& parent = std::filesystem::temp_directory_path()) {
    std::string name = (parent / "kiln-cache-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder " + name);
    path_ = name;
  }
  CacheTestFolder(const CacheTestFolder&) = delete;
  CacheTestFolder& operator=(const CacheTestFolder&) = delete;
  ~CacheTestFolder() {
    std::error_code ignored;
    std::filesystem::permissions(path_, std::filesystem::perms::owner_all, ignored);
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
};

class CollectedLog final : public LogSink {
 public:
  void write(LogLevel level, std::string_view, std::string_view message) noexcept override {
    const std::lock_guard lock(mutex_);
    if (level >= LogLevel::warning) warnings_.emplace_back(message);
    messages_.emplace_back(message);
  }
  // How many messages, of whatever level, hold the words.
  int said(std::string_view words) const {
    const std::lock_guard lock(mutex_);
    int count = 0;
    for (const std::string& message : messages_) count += message.find(words) != std::string::npos;
    return count;
  }
  std::vector<std::string> warnings() const {
    const std::lock_guard lock(mutex_);
    return warnings_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> warnings_, messages_;
};

struct Workplace {
  CacheTestFolder temporary;
  CollectedLog log;
  CacheConfig config;
  LoadTrial trial;  // empty: no child tries suspects

  Workplace() {
    config.directory = temporary.path() / "cache";
    config.key_file = temporary.path() / "state" / "key";
  }

  // Without the machine's own memory pressure, which would drop programs in the middle of a test.
  std::unique_ptr<TieredCache> open(ProcessSharing sharing = {}) {
    const std::filesystem::path none = temporary.path() / "none";
    auto cache = TieredCache::create({{&log, LogLevel::info}, config, OwnThreads::yes, nullptr, trial},
                                     std::move(sharing), {none, none, none});
    if (!cache) throw std::runtime_error(cache.error().text());
    return std::move(cache).value();
  }

  std::vector<std::filesystem::path> files(const std::string& extension) const {
    return found([&](const std::filesystem::path& path) { return path.extension() == extension; });
  }
  std::vector<std::filesystem::path> named(const std::string& name) const {
    return found([&](const std::filesystem::path& path) { return path.filename() == name; });
  }

 private:
  template <class Wanted>
  std::vector<std::filesystem::path> found(const Wanted& wanted) const {
    std::vector<std::filesystem::path> paths;
    if (!std::filesystem::exists(config.directory)) return paths;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(config.directory)) {
      if (entry.is_regular_file() && wanted(entry.path())) paths.push_back(entry.path());
    }
    return paths;
  }
};

inline KernelSource source_of(std::string text) {
  KernelSource source;
  source.dialect = Dialect::glsl;
  source.text = std::move(text);
  return source;
}

inline ProgramKey key_for(const std::string& text, const SyntheticDevice& device) {
  return key_of(source_of(text), device.info(), "the label of " + text);
}

inline Result<Acquired> acquire(ProgramCache& cache, const std::string& text, SyntheticDevice& device) {
  return cache.get_or_build(key_for(text, device), source_of(text), device);
}

inline std::string text_of(const Acquired& acquired) {
  return static_cast<const SyntheticProgram&>(*acquired.program).text();
}

inline std::vector<std::byte> contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return copied_bytes(text);
}

inline void overwrite(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!file.flush()) throw std::runtime_error("cannot write " + path.string());
}

}  // namespace kiln::test
