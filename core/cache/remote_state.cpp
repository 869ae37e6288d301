#include "cache/remote_state.hpp"

#include "base/os/file_lock.hpp"
#include "base/os/private_folder.hpp"

#include <kiln/clock.hpp>
#include <kiln/digest.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>

#include <unistd.h>

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
  const UniqueFd root = open_folder(directory, Create::no).value_or(UniqueFd());
  if (!root) return {};
  return open_subfolder(root.get(), "remote", "folder remote", create).value_or(UniqueFd());
}

RemoteTotals read_totals_in(int folder, const std::string& url) {
  const FileContents file = read_file(folder, totals_file(url), most_totals_bytes);
  return file.state == FileState::read ? decode_remote_totals(text_of(file.bytes)) : RemoteTotals();
}

}  // namespace

std::span<const std::pair<const char*, std::uint64_t RemoteTotals::*>> remote_total_names() noexcept {
  using Totals = RemoteTotals;
  static constexpr std::pair<const char*, std::uint64_t Totals::*> names[] = {
      {"found", &Totals::found},           {"absent", &Totals::absent},
      {"refused", &Totals::refused},       {"failed", &Totals::failed},
      {"written", &Totals::written},       {"write_failed", &Totals::write_failed},
      {"bytes_read", &Totals::bytes_read}, {"bytes_written", &Totals::bytes_written},
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

namespace {

constexpr std::uint64_t reread_ns = 20'000'000;
constexpr std::int64_t first_pause_ms = 10'000, longest_pause_ms = 60'000, longest_demanded_ms = 600'000;
constexpr std::int64_t probe_ms = 1000;  // what a probe may take
constexpr std::int64_t longest_late_ms = 10'000;
constexpr std::size_t number_bytes = 21, state_numbers = 5;
constexpr std::size_t state_bytes = number_bytes * state_numbers;

std::int64_t now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// A time that lies further ahead than any pause comes from a clock that was set back.
bool is_ahead(std::int64_t until_ms, std::int64_t now, std::int64_t longest) {
  return until_ms > now && until_ms <= now + longest;
}

}  // namespace

std::string encode_remote_state(const RemoteState& state) {
  char text[state_bytes + 1];
  std::snprintf(text, sizeof text, "%020lld %020llu %020llu %020llu %020lld\n",
                static_cast<long long>(state.closed_until_ms), static_cast<unsigned long long>(state.failures),
                static_cast<unsigned long long>(state.round_trip_us), static_cast<unsigned long long>(state.slow_us),
                static_cast<long long>(state.late_until_ms));
  return text;
}

RemoteState decode_remote_state(std::string_view text) {
  if (text.size() != state_bytes || text.back() != '\n') return {};
  std::array<std::uint64_t, state_numbers> read{};
  for (std::size_t i = 0; i < state_numbers; ++i) {
    const std::string_view digits = text.substr(i * number_bytes, number_bytes - 1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), read[i]);
    if (error != std::errc() || end != digits.data() + digits.size()) return {};
    if (i + 1 < state_numbers && text[(i + 1) * number_bytes - 1] != ' ') return {};
  }
  constexpr std::uint64_t most_us = 60'000'000;
  RemoteState state{static_cast<std::int64_t>(read[0]), read[1], read[2], read[3], static_cast<std::int64_t>(read[4])};
  if (state.closed_until_ms < 0 || state.late_until_ms < 0 || state.round_trip_us > most_us ||
      state.slow_us > most_us) {
    return {};
  }
  return state;
}

RemoteBreaker::RemoteBreaker(std::filesystem::path directory, bool writes, const std::string& url)
    : directory_(std::move(directory)), writes_(writes), name_(remote_file_stem(url) + ".state") {}

void RemoteBreaker::read() {
  const std::uint64_t now = now_ns();
  if (is_private_ || now - read_at_ns_ < reread_ns) return;
  read_at_ns_ = now;
  if (!file_) {
    const Create create = writes_ ? Create::yes : Create::no;
    const UniqueFd folder = remote_folder(directory_, create);
    if (!folder) return;
    Result<UniqueFd> file = open_shared_file(folder.get(), name_, "file " + name_, create);
    if (!file || !*file) return;
    file_ = std::move(*file);
  }
  char text[state_bytes];
  const ssize_t bytes = pread(file_.get(), text, sizeof text, 0);
  if (bytes == static_cast<ssize_t>(sizeof text)) state_ = decode_remote_state({text, sizeof text});
}

void RemoteBreaker::write() {
  const std::string text = encode_remote_state(state_);
  is_private_ =
      !file_ || !writes_ || pwrite(file_.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size());
}

bool RemoteBreaker::allows_jobs() {
  const std::lock_guard lock(mutex_);
  read();
  return state_.failures == 0 && !is_ahead(state_.late_until_ms, now_ms(), longest_late_ms);
}

bool RemoteBreaker::has_failed() {
  const std::lock_guard lock(mutex_);
  read();
  return state_.failures != 0;
}

bool RemoteBreaker::is_probe_due() {
  const std::lock_guard lock(mutex_);
  read();
  if (state_.failures == 0 || is_ahead(state_.closed_until_ms, now_ms(), longest_demanded_ms)) return false;
  state_.closed_until_ms = now_ms() + probe_ms;
  write();
  return true;
}

void RemoteBreaker::succeeded() {
  const std::lock_guard lock(mutex_);
  read();
  if (state_.failures == 0) return;
  state_.failures = 0;
  state_.closed_until_ms = 0;
  write();
}

void RemoteBreaker::failed(std::chrono::seconds retry_after) {
  const std::lock_guard lock(mutex_);
  read();
  // Requests that were sent together fail together.
  if (state_.failures != 0 && is_ahead(state_.closed_until_ms, now_ms(), longest_demanded_ms)) return;
  fail(retry_after);
}

void RemoteBreaker::probe_failed(std::chrono::seconds retry_after) {
  const std::lock_guard lock(mutex_);
  read();
  fail(retry_after);
}

void RemoteBreaker::fail(std::chrono::seconds retry_after) {
  const std::int64_t pause = std::min(longest_pause_ms, first_pause_ms << std::min<std::uint64_t>(state_.failures, 3));
  const std::int64_t demanded = 1000 * std::clamp<std::int64_t>(retry_after.count(), 0, longest_demanded_ms / 1000);
  ++state_.failures;
  state_.closed_until_ms = now_ms() + std::max(pause, demanded);
  write();
}

void RemoteBreaker::late(std::chrono::milliseconds at_most) {
  const std::lock_guard lock(mutex_);
  read();
  state_.late_until_ms = now_ms() + std::min<std::int64_t>(at_most.count(), longest_late_ms);
  write();
}

void RemoteBreaker::answered_late() {
  const std::lock_guard lock(mutex_);
  read();
  if (state_.late_until_ms == 0) return;
  state_.late_until_ms = 0;
  write();
}

void RemoteBreaker::measured(std::uint64_t round_trip_us, std::uint64_t slow_us) {
  const std::lock_guard lock(mutex_);
  read();
  state_.round_trip_us = round_trip_us;
  state_.slow_us = slow_us;
  write();
}

RemoteState RemoteBreaker::state() {
  const std::lock_guard lock(mutex_);
  read();
  return state_;
}

}  // namespace kiln
