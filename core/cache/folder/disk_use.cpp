#include "cache/folder/disk_use.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <string_view>
#include <utility>

namespace kiln {
namespace {

// A figure takes microseconds to change. Who has it for longer walks, or was stopped: nobody waits for that.
constexpr std::chrono::milliseconds patience{100};
constexpr std::size_t digits = 20;  // of the largest number there is
constexpr std::size_t numbers = 3;
constexpr std::size_t text_bytes = numbers * (digits + 1);

std::optional<std::uint64_t> number_in(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

}  // namespace

void DiskUse::add(std::uint64_t bytes) noexcept {
  programs += bytes;
  published += bytes;
}

void DiskUse::remove(std::uint64_t bytes) noexcept { programs -= std::min(programs, bytes); }

std::optional<DiskUseFile> DiskUseFile::take(int root) {
  auto lock = BriefLock::take(root, disk_use_name, patience);
  if (!lock) return std::nullopt;
  return DiskUseFile(std::move(*lock));
}

std::optional<DiskUse> DiskUseFile::read() const {
  std::array<char, text_bytes + 1> text;  // a longer one is of a version that wrote more numbers
  ssize_t got = -1;
  do got = pread(lock_.file(), text.data(), text.size(), 0);
  while (got < 0 && errno == EINTR);
  if (got != static_cast<ssize_t>(text_bytes)) return std::nullopt;
  const auto number = [&](std::size_t place) { return number_in({text.data() + place * (digits + 1), digits}); };
  const auto programs = number(0), published = number(1), walked = number(2);
  if (!programs || !published || !walked || *walked > *published) return std::nullopt;
  return DiskUse{*programs, *published, *walked};
}

void DiskUseFile::write(const DiskUse& use) const noexcept {
  std::array<char, text_bytes + 1> text;
  const auto number = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
  std::snprintf(text.data(), text.size(), "%020llu %020llu %020llu\n", number(use.programs), number(use.published),
                number(use.walked));
  ssize_t put = -1;
  do put = pwrite(lock_.file(), text.data(), text_bytes, 0);
  while (put < 0 && errno == EINTR);
  // A figure that could not be changed would be too low. The file of a version that wrote more numbers is cut.
  const bool whole = put == static_cast<ssize_t>(text_bytes);
  static_cast<void>(ftruncate(lock_.file(), whole ? static_cast<off_t>(text_bytes) : 0));
}

}  // namespace kiln
