// What the system says of memory at one moment: how long tasks stalled for want of it (PSI), and how much of its limit
// the process's control group uses. Files that are missing are usual, and say nothing.
//
// Thread-safety: pure calls of the operating system. Ownership: values.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace kiln {

struct MemorySources {
  std::filesystem::path stalls = "/proc/pressure/memory";
  std::filesystem::path membership = "/proc/self/cgroup";
  std::filesystem::path groups = "/sys/fs/cgroup";  // version 2, or below it `memory` of version 1
};

struct GroupUse {
  std::uint64_t limit = 0;
  std::uint64_t used = 0;  // without pages of files, which go when room is needed
};

struct MemoryReading {
  std::optional<double> stalled_percent;  // of the last ten seconds, in which some task stalled
  std::optional<GroupUse> group;          // the fullest among the process's group and those above it
};

MemoryReading read_memory(const MemorySources& sources);

}  // namespace kiln
