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
constexpr std::size_t text_bytes = 3 * (digits + 1);

std::optional<std::uint64_t> number_in(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

}  // namespace

void DiskUse::add(std::uint64_t published) noexcept {
  programs += published;
  written += published;
}

void DiskUse::remove(std::uint64_t removed) noexcept { programs -= std::min(programs, removed); }

std::optional<DiskUseFile> DiskUseFile::take(int root) {
  auto lock = BriefLock::take(root, disk_use_name, patience);
  if (!lock) return std::nullopt;
  return DiskUseFile(std::move(*lock));
}

std::optional<DiskUse> DiskUseFile::read() const {
  std::array<char, text_bytes> text;
  ssize_t got = -1;
  do got = pread(lock_.file(), text.data(), text.size(), 0);
  while (got < 0 && errno == EINTR);
  if (got != static_cast<ssize_t>(text.size())) return std::nullopt;
  const auto number = [&](std::size_t place) { return number_in({text.data() + place * (digits + 1), digits}); };
  const auto programs = number(0), drivers = number(1), written = number(2);
  if (!programs || !drivers || !written) return std::nullopt;
  return DiskUse{*programs, *drivers, *written};
}

void DiskUseFile::write(const DiskUse& use) const noexcept {
  std::array<char, text_bytes + 1> text;
  std::snprintf(text.data(), text.size(), "%020llu %020llu %020llu\n", static_cast<unsigned long long>(use.programs),
                static_cast<unsigned long long>(use.drivers), static_cast<unsigned long long>(use.written));
  ssize_t put = -1;
  do put = pwrite(lock_.file(), text.data(), text_bytes, 0);
  while (put < 0 && errno == EINTR);
  // A figure that could not be changed would be too low.
  if (put != static_cast<ssize_t>(text_bytes)) static_cast<void>(ftruncate(lock_.file(), 0));
}

}  // namespace kiln
