// DiskBound: keeps what lies below one cache folder within a number of bytes, the drivers' own caches counted in.
//
// The figure comes from a survey, made when it is first asked for and again after an eighth of the bound was written;
// in between it runs along, with what other processes write where the figure is shared (disk_use.hpp). Over the bound
// the caches of drivers that are gone go first; of the other drivers' caches, this process's own excepted, those that
// take more than half of the bound; then the least recently used entries, until seven eighths are left. Opening a cache
// therefore walks nothing. Thread-safety: every method from any thread. Ownership: borrows the root's descriptor.
#pragma once

#include "cache/folder/disk_use.hpp"

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>

namespace kiln {

enum class Figure : std::uint8_t {
  invalid = 0,
  shared,  // with all processes that use the folder: together they keep to the bound
  own,     // each process sees what others wrote at its next survey
};

class DiskBound {
 public:
  DiskBound(int root, std::uint64_t most_bytes, Figure figure = Figure::shared) noexcept
      : root_(root), most_bytes_(most_bytes), figure_(figure) {}

  std::uint64_t most_bytes() const noexcept { return most_bytes_; }
  // After `bytes` were published: answers how many entries had to go.
  std::size_t published(std::uint64_t bytes);
  void removed(std::uint64_t bytes);
  // Of programs alone.
  std::uint64_t bytes();

 private:
  // What this process did and the others were not told.
  struct Untold {
    std::uint64_t published = 0, removed = 0;
  };

  // Surveys; what is over the bound goes.
  std::size_t walk();

  const int root_;
  const std::uint64_t most_bytes_;
  const Figure figure_;
  std::mutex mutex_;
  std::optional<DiskUse> use_;  // nullopt: not surveyed yet
  Untold untold_;
};

}  // namespace kiln
