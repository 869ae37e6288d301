// Thread limits: whether a process may start more threads, from what the kernel tells, without starting any.
//
// Thread-safety: any thread. Ownership: values.
#pragma once

#include <filesystem>

namespace kiln {

struct ThreadLimitSources {
  std::filesystem::path tasks = "/proc/loadavg";  // the fourth field is "running/all tasks of the system"
  std::filesystem::path most_tasks = "/proc/sys/kernel/threads-max";
  std::filesystem::path membership = "/proc/self/cgroup";
  std::filesystem::path groups = "/sys/fs/cgroup";  // cgroup version 2, or the folder above `pids` of version 1
};

// true: RLIMIT_NPROC, pids.max of the group and of those above it, and the system leave `count` threads and some more.
// false: they do not, or cannot be read, or memory is limited, which the stacks of threads count against.
bool limits_leave_threads(unsigned count, const ThreadLimitSources& sources = {});

}  // namespace kiln
