#include "base/os/control_group.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <kiln/buffer.hpp>

#include <algorithm>
#include <array>

namespace kiln {

std::string text_of_kernel_file(const std::filesystem::path& path) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  std::array<char, 16384> text;
  const ssize_t got = file ? read(file.get(), text.data(), text.size()) : -1;
  return got > 0 ? std::string(text.data(), static_cast<std::size_t>(got)) : std::string();
}

std::optional<std::string> group_path_in(const std::string& membership, std::string_view controller) {
  const auto names = [&](std::string_view controllers) {
    for (;;) {
      const std::size_t comma = controllers.find(',');
      if (controllers.substr(0, comma) == controller) return true;
      if (comma == std::string_view::npos) return false;
      controllers.remove_prefix(comma + 1);
    }
  };
  for (std::size_t begin = 0; begin < membership.size();) {
    const std::size_t end = std::min(membership.find('\n', begin), membership.size());
    const std::string_view line = std::string_view(membership).substr(begin, end - begin);
    begin = end + 1;
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    if (names(line.substr(first + 1, second - first - 1))) return std::string(line.substr(second + 1));
  }
  return std::nullopt;
}

void for_each_group(const std::filesystem::path& mount, const std::string& path,
                    const std::function<void(const std::filesystem::path&)>& at) {
  constexpr int most_levels = 64;
  std::filesystem::path inner = std::filesystem::path(path).relative_path().lexically_normal();
  if (inner.string().starts_with("..")) return;
  for (int level = 0; level < most_levels; ++level) {
    at(mount / inner);
    if (inner.empty() || inner == ".") return;
    inner = inner.parent_path();
  }
}

}  // namespace kiln
