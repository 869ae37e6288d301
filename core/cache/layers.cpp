#include "cache/layers.hpp"

#include <kiln/regular_file.hpp>

#include <unistd.h>

#include <ctime>
#include <utility>

namespace kiln {

Layers::Layers(Log log, const CacheConfig& cache, std::shared_ptr<CurrentKeys> trusted)
    : log_(log), folders_(cache.layers), writers_(cache.layer_writers), trusted_(std::move(trusted)) {
  if (folders_.empty()) return;
  std::vector<std::string> problems;
  if (chosen_keys(*trusted_->get(), writers_, problems).empty())
    problems.push_back("no key is trusted, so no program of a layer is used");
  for (const std::string& problem : problems) log_.write(LogLevel::warning, "cache", "layers: " + problem);
}

std::optional<SharedProgram> Layers::find(const AskedProgram& asked, SharedCounters& counters) {
  for (const std::filesystem::path& folder : folders_) {
    const std::filesystem::path path = folder / asked.name();
    const Result<RegularFile> file = RegularFile::open(path);
    if (!file) continue;
    const auto bytes = file->contents(most_object_bytes);
    if (!bytes) continue;
    std::vector<std::string> told_at_opening;
    const auto accepted = chosen_keys(*trusted_->get(), writers_, told_at_opening);
    OpenedObject object = open_object(*bytes, accepted, std::time(nullptr), asked.material, inflaters_);
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
