#include "cache/remote_totals.hpp"

#include "base/os/file_lock.hpp"
#include "base/os/private_folder.hpp"

#include <kiln/digest.hpp>

#include <algorithm>
#include <charconv>
#include <chrono>

namespace kiln {
namespace {

constexpr const char* totals_lock = "totals.lock";
constexpr std::chrono::milliseconds lock_patience{20};
constexpr std::uint64_t most_totals_bytes = 4096;
constexpr std::size_t stem_digits = 16;

std::string totals_file(const std::string& url) { return remote_file_stem(url) + ".totals"; }

// Empty: there is none.
UniqueFd remote_folder(const std::filesystem::path& directory, Create create) {
  if (directory.empty()) return {};
  const Result<UniqueFd> root = open_folder(directory, Create::no);
  if (!root || !*root) return {};
  Result<UniqueFd> folder = open_subfolder(root->get(), "remote", "folder remote", create);
  return folder ? std::move(*folder) : UniqueFd();
}

RemoteTotals read_totals_in(int folder, const std::string& url) {
  const FileContents file = read_file(folder, totals_file(url), most_totals_bytes);
  return file.state == FileState::read ? decode_remote_totals(text_of(file.bytes)) : RemoteTotals();
}

}  // namespace

std::span<const std::pair<const char*, std::uint64_t RemoteTotals::*>> remote_total_names() noexcept {
  using Totals = RemoteTotals;
  static constexpr std::pair<const char*, std::uint64_t Totals::*> names[] = {
      {"found", &Totals::found},
      {"absent", &Totals::absent},
      {"refused", &Totals::refused},
      {"failed", &Totals::failed},
      {"written", &Totals::written},
      {"write_failed", &Totals::write_failed},
      {"bytes_read", &Totals::bytes_read},
      {"bytes_written", &Totals::bytes_written},
  };
  return names;
}

std::string remote_file_stem(const std::string& url) { return sha256(url).hex().substr(0, stem_digits); }

std::string encode_remote_totals(const RemoteTotals& totals) {
  std::string text;
  for (const auto& [name, count] : remote_total_names()) {
    text += std::string(name) + " " + std::to_string(totals.*count) + "\n";
  }
  return text;
}

RemoteTotals decode_remote_totals(std::string_view text) {
  RemoteTotals totals;
  while (!text.empty()) {
    const std::size_t end = text.find('\n'), space = text.find(' ');
    if (end == std::string_view::npos || space > end) return {};
    const std::string_view word = text.substr(0, space), digits = text.substr(space + 1, end - space - 1);
    std::uint64_t number = 0;
    const auto [last, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error != std::errc() || last != digits.data() + digits.size()) return {};
    for (const auto& [name, count] : remote_total_names()) {
      if (name == word) totals.*count = number;
    }
    text.remove_prefix(end + 1);
  }
  return totals;
}

void add_remote_totals(const std::filesystem::path& directory, const std::string& url, const RemoteTotals& more) {
  const auto names = remote_total_names();
  if (std::ranges::all_of(names, [&](const auto& one) { return more.*one.second == 0; })) return;
  const UniqueFd folder = remote_folder(directory, Create::yes);
  if (!folder) return;
  const auto held = BriefLock::take(folder.get(), totals_lock, lock_patience);
  if (!held) return;
  RemoteTotals totals = read_totals_in(folder.get(), url);
  for (const auto& [name, count] : names) totals.*count += more.*count;
  const std::string text = encode_remote_totals(totals);
  static_cast<void>(write_file(folder.get(), totals_file(url), std::as_bytes(std::span(text))));
}

RemoteTotals read_remote_totals(const std::filesystem::path& directory, const std::string& url) {
  const UniqueFd folder = remote_folder(directory, Create::no);
  return folder ? read_totals_in(folder.get(), url) : RemoteTotals();
}

}  // namespace kiln
