#include "cache/layers.hpp"

#include <kiln/regular_file.hpp>

#include <unistd.h>

#include <ctime>

namespace kiln {

Layers::Layers(Log log, const CacheConfig& cache, const TrustedKeys& trusted) : log_(log), folders_(cache.layers) {
  if (folders_.empty()) return;
  std::vector<std::string> problems;
  accepted_ = chosen_keys(trusted, cache.layer_writers, problems);
  if (accepted_.empty()) problems.push_back("no key is trusted, so no program of a layer is used");
  for (const std::string& problem : problems) log_.write(LogLevel::warning, "cache", "layers: " + problem);
}

std::optional<SharedProgram> Layers::find(const AskedProgram& asked, SharedCounters& counters) {
  for (const std::filesystem::path& folder : folders_) {
    const std::filesystem::path path = folder / asked.name();
    const Result<RegularFile> file = RegularFile::open(path);
    if (!file) continue;
    const auto bytes = file->contents(most_object_bytes);
    if (!bytes) continue;
    OpenedObject object = open_object(*bytes, accepted_, std::time(nullptr), asked.material, inflaters_);
    if (object.fault == ObjectFault::none) return std::move(object.program);
    counters.change([&](SharedCounts& counts) { ++count_of(counts, object.fault); });
    log_.write(warned_.exchange(true) ? LogLevel::info : LogLevel::warning, "cache",
               "layer object " + path.string() + " is not used: " + std::string(to_string(object.fault)) + ": it " +
                   object.why);
  }
  return std::nullopt;
}

bool Layers::holds(const AskedProgram& asked) const {
  for (const std::filesystem::path& folder : folders_) {
    if (access((folder / asked.name()).c_str(), R_OK) == 0) return true;
  }
  return false;
}

}  // namespace kiln
