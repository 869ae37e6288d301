// DiskBound: keeps the programs below one cache folder within a number of bytes.
//
// The figure comes from a survey, made when it is first asked for and again after an eighth of the bound was written;
// in between it runs along, with what other processes write where the figure is shared (disk_use.hpp). One of them
// walks at a time; what the others write meanwhile is added to what he found. Over the bound the least recently used
// entries go, until seven eighths are left. Opening a cache therefore walks nothing. Thread-safety: every method from
// any thread. Ownership: borrows the root's descriptor.
#pragma once

#include "cache/folder/disk_use.hpp"

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>

namespace kiln {

// Locked by who walks.
inline constexpr const char* disk_walk_name = "disk_walk.lock";

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
  std::uint64_t bytes();

 private:
  // What this process did and the others were not told.
  struct Untold {
    std::uint64_t published = 0, removed = 0;
  };

  enum class Told : std::uint8_t {
    invalid = 0,
    known,    // use_ is what there is, but for what others have not told
    unknown,  // nobody has walked since the figure was lost, or this process never did
    alone,    // the others were not told: there is no file of theirs, or it was not to be had
  };

  // Tells the others what this process did, and takes from them what they did.
  Told tell();
  bool is_walk_due(Told told) const noexcept;
  // Surveys; what is over the bound goes.
  std::size_t walk(Told told);
  // What a walk found, begun when so much had been published, and what was published meanwhile.
  void settle(DiskUse found, std::uint64_t published_before);

  const int root_;
  const std::uint64_t most_bytes_;
  const Figure figure_;
  std::mutex mutex_;
  std::optional<DiskUse> use_;  // nullopt: neither surveyed nor told
  bool surveyed_ = false;
  Untold untold_;
};

}  // namespace kiln
