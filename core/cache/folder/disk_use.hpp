// DiskUse: how many bytes the programs below a cache folder take; and DiskUseFile, by which the processes that write
// there tell each other, so that none of them has to walk to know what the others wrote.
//
// The file is a text of fixed width, docs/cache-format.md. Thread-safety: values; a DiskUseFile holds the file's lock,
// for a moment, until it dies. Ownership: borrows the root's descriptor. The figure is nobody's promise: a walk puts it
// right.
#pragma once

#include "cache/history/brief_lock.hpp"

#include <cstdint>
#include <optional>
#include <utility>

namespace kiln {

inline constexpr const char* disk_use_name = "disk_use.lock";

struct DiskUse {
  std::uint64_t programs = 0;   // bytes in the folders of devices
  std::uint64_t published = 0;  // bytes that were ever published, by those who tell each other
  std::uint64_t walked = 0;     // what `published` was when the last walk began

  std::uint64_t since_walk() const noexcept { return published - walked; }
  void add(std::uint64_t bytes) noexcept;
  void remove(std::uint64_t bytes) noexcept;
};

class DiskUseFile {
 public:
  // nullopt: others hold it for too long, or there is no such lock to be had here.
  static std::optional<DiskUseFile> take(int root);

  // nullopt: nobody has told yet.
  std::optional<DiskUse> read() const;
  // Failing costs the others a walk.
  void write(const DiskUse& use) const noexcept;

 private:
  explicit DiskUseFile(BriefLock lock) noexcept : lock_(std::move(lock)) {}

  BriefLock lock_;
};

}  // namespace kiln
