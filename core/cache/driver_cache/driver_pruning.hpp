// prune_driver_folders: makes room among the drivers' own caches, for the bound on what lies below a cache folder.
//
// The one that this process uses never goes, and each goes as a whole. Thread-safety: calls of the operating system
// alone; a process whose driver's cache goes meanwhile compiles again. Ownership: values.
#pragma once

#include "cache/driver_cache/driver_folders.hpp"

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace kiln {

struct DriverRoom {
  std::uint64_t needed =
      0;                   // bytes: until so many are freed, those whose drivers are gone go, the longest unused first
  std::uint64_t most = 0;  // bytes of all that stay: beyond them the least recently used of the others go
};

// `devices`: the device folders that hold programs. Answers the bytes that stay.
std::uint64_t prune_driver_folders(int root, std::vector<DriverFolder> folders, const std::set<std::string>& devices,
                                   const DriverRoom& room);

std::uint64_t bytes_of(const std::vector<DriverFolder>& folders) noexcept;

}  // namespace kiln
