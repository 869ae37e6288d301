// Layers: read-only folders with signed programs, below the writable cache folder ([cache] layers).
//
// A layer is a folder DEVICE_FOLDER/DIGEST of shared objects (shared_object.hpp). It has no index: a program is opened
// by its name, so opening a layer costs nothing, whatever its size.
// Thread-safety: every method from any thread. Ownership: values; borrows the counters.
#pragma once

#include "cache/remote_endpoint.hpp"
#include "cache/shared_object.hpp"

#include <kiln/config.hpp>
#include <kiln/log.hpp>

#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kiln {

class Layers {
 public:
  // Accepts the keys in [cache] layer_writers, or all trusted keys if it is empty.
  Layers(Log log, const CacheConfig& cache, std::shared_ptr<CurrentKeys> trusted);

  bool exist() const noexcept { return !folders_.empty(); }
  // The first layer with an object that is accepted. A bad object is counted and logged, and the next layer is tried.
  std::optional<SharedProgram> find(const AskedProgram& asked, SharedCounters& counters);
  // Whether a layer has a file for the program. Does not read it.
  bool holds(const AskedProgram& asked) const;

 private:
  const Log log_;
  const std::vector<std::filesystem::path> folders_;
  const std::vector<std::string> writers_;
  const std::shared_ptr<CurrentKeys> trusted_;
  Inflaters inflaters_;
  std::atomic<bool> warned_{false};
};

}  // namespace kiln
