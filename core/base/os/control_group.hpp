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

}  // namespace kiln
