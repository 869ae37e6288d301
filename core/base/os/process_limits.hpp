// What the system allows this process: control groups, threads and rights.
//
// Control groups: where the kernel tells the group of this process and its limits, in versions 1 and 2.
//
// Thread-safety: any thread. Ownership: values. A file that is missing or cannot be read counts as empty.
#pragma once

#include <charconv>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace kiln {

// The beginning of a small file of the kernel; empty if there is none.
std::string text_of_kernel_file(const std::filesystem::path& path);

// The number that a text begins with.
template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end != text.data() ? std::optional(number) : std::nullopt;
}

// The group's path in /proc/self/cgroup, whose lines are "N:controllers:/path". controller: empty for version 2.
std::optional<std::string> group_path_in(const std::string& membership, std::string_view controller);

// Calls `at` for the group's folder and each one above it, within what is mounted: a container may see its own group at
// the root of the mount and its path as the host has it.
void for_each_group(const std::filesystem::path& mount, const std::string& path,
                    const std::function<void(const std::filesystem::path&)>& at);

// Thread limits: whether a process may start more threads, from what the kernel tells, without starting any.
//
// Thread-safety: any thread. Ownership: values.

struct ThreadLimitSources {
  std::filesystem::path tasks = "/proc/loadavg";  // the fourth field is "running/all tasks of the system"
  std::filesystem::path most_tasks = "/proc/sys/kernel/threads-max";
  std::filesystem::path membership = "/proc/self/cgroup";
  std::filesystem::path groups = "/sys/fs/cgroup";  // cgroup version 2, or the folder above `pids` of version 1
};

// true: RLIMIT_NPROC, pids.max of the group and of those above it, and the system leave `count` threads and some more.
// false: they do not, or cannot be read, or memory is limited, which the stacks of threads count against.
bool limits_leave_threads(unsigned count, const ThreadLimitSources& sources = {});

// Huge pages: what kiln::prefer_huge_pages() does. When one page took longer than `most_ns`, neither this thread nor any later
// one of the process gets them.
//
// Thread-safety: any thread.

void prefer_huge_pages(std::uint64_t most_ns) noexcept;

// Privilege: whether this process has more rights than the user who started it (setuid, setgid or file capabilities).
//
// Such a process does not trust folders named by its environment. Thread-safety: pure.

bool has_borrowed_rights() noexcept;

}  // namespace kiln
