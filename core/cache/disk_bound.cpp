#include "cache/disk_bound.hpp"

#include "base/os/file_lock.hpp"
#include "base/os/private_folder.hpp"
#include "cache/manifest.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

namespace kiln {

namespace {

constexpr std::size_t digest_digits = 64;
constexpr std::size_t most_pruned = 4096;
constexpr std::time_t stale_after_s = 600;

std::optional<Digest> digest_of_file(std::string_view name) noexcept {
  if (name.size() < digest_digits) return std::nullopt;
  const std::string_view suffix = name.substr(digest_digits);
  if (suffix != ".bin" && suffix != ".meta") return std::nullopt;
  return Digest::from_hex(name.substr(0, digest_digits));
}

bool is_aside_name(std::string_view name) noexcept {
  return name.ends_with(quarantined_suffix) || name.ends_with(suspect_suffix);
}

// What is nobody's after some time: what a killed process was writing, and what is quarantined no more.
void sweep_if_stale(int folder, const std::string& name, const struct stat& at) {
  const std::time_t age_s = std::abs(std::time(nullptr) - at.st_mtime);  // the clock may have been set back
  const bool stale =
      (NewFile::is_temporary(name) && age_s > stale_after_s) || (is_aside_name(name) && age_s > quarantine_s);
  if (stale) unlinkat(folder, name.c_str(), 0);
}

// Beside what is surveyed: a manifest, statistics.
void sweep_temporary(int folder, const std::string& name, Sweep sweep) {
  struct stat at {};
  if (sweep != Sweep::yes || !NewFile::is_temporary(name)) return;
  if (fstatat(folder, name.c_str(), &at, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(at.st_mode)) {
    sweep_if_stale(folder, name, at);
  }
}

void survey_subfolder(int folder, std::size_t index, Sweep sweep, Survey& found) {
  std::map<Digest, StoredEntry> entries;
  for (const std::string& name : names_in(folder)) {
    struct stat at {};
    if (fstatat(folder, name.c_str(), &at, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(at.st_mode)) continue;
    found.bytes += static_cast<std::uint64_t>(at.st_size);
    if (const auto digest = digest_of_file(name)) {
      StoredEntry& entry = entries[*digest];
      entry.folder = index;
      entry.digest = *digest;
      entry.bytes += static_cast<std::uint64_t>(at.st_size);
      entry.last_used_ns = std::max(entry.last_used_ns, modified_ns(at));
      entry.program = entry.program || name.ends_with(".bin");
      continue;
    }
    const auto aside = is_aside_name(name) ? Digest::from_hex(name.substr(0, digest_digits)) : std::nullopt;
    if (aside) found.aside.push_back({index, *aside, name.ends_with(quarantined_suffix), at.st_mtime});
    if (sweep == Sweep::yes) sweep_if_stale(folder, name, at);
  }
  for (const auto& [digest, entry] : entries) found.entries.push_back(entry);
}

enum class FileRemoval : std::uint8_t { invalid = 0, done, gone, failed };

FileRemoval remove_file(int folder, const std::string& name) {
  if (unlinkat(folder, name.c_str(), 0) == 0) return FileRemoval::done;
  return errno == ENOENT ? FileRemoval::gone : FileRemoval::failed;
}

// Keeps the first failure.
UniqueFd surveyed_folder(int parent, const std::string& name, const std::string& who, Survey& found) {
  Result<UniqueFd> opened = open_subfolder(parent, name, "folder " + who, Create::no);
  if (opened) return std::move(*opened);
  if (found.failure.ok()) found.failure = opened.error();
  return UniqueFd();
}

}  // namespace

Survey survey(int root, Sweep sweep) {
  Survey found;
  for (const std::string& name : names_in(root)) {
    if (!is_device_folder_name(name)) {
      sweep_temporary(root, name, sweep);
      continue;
    }
    const UniqueFd device = surveyed_folder(root, name, name, found);
    if (!device) continue;
    found.folders.push_back(name);
    for (const std::string& inner : names_in(device.get())) {
      if (!is_subfolder_name(inner)) {
        sweep_temporary(device.get(), inner, sweep);
        continue;
      }
      if (const UniqueFd folder = surveyed_folder(device.get(), inner, name + "/" + inner, found)) {
        survey_subfolder(folder.get(), found.folders.size() - 1, sweep, found);
      }
    }
  }
  return found;
}

std::size_t prune(int root, Survey& found, std::uint64_t bytes) {
  std::ranges::sort(found.entries, {}, &StoredEntry::last_used_ns);
  std::size_t removed = 0;
  for (const StoredEntry& entry : found.entries) {
    if (found.bytes <= bytes || removed == most_pruned) break;
    const UniqueFd device = existing_subfolder(root, found.folders[entry.folder]);
    const UniqueFd folder = device ? existing_subfolder(device.get(), subfolder_of(entry.digest)) : UniqueFd();
    if (!folder) continue;
    const FileRemoval program = remove_file(folder.get(), file_name_of(entry.digest, ".bin"));
    const FileRemoval meta = remove_file(folder.get(), file_name_of(entry.digest, ".meta"));
    if (program == FileRemoval::failed || meta == FileRemoval::failed) continue;
    // What somebody else has removed since it was seen makes room as well.
    found.bytes -= std::min(found.bytes, entry.bytes);
    if (program == FileRemoval::done || meta == FileRemoval::done) ++removed;
  }
  return removed;
}

Status remove_entry(int root, const std::string& folder, const Digest& digest) {
  const UniqueFd device = existing_subfolder(root, folder);
  const UniqueFd inner = device ? existing_subfolder(device.get(), subfolder_of(digest)) : UniqueFd();
  if (!inner) return {};
  for (const char* suffix : {".bin", ".meta"}) {
    const std::string name = file_name_of(digest, suffix);
    if (unlinkat(inner.get(), name.c_str(), 0) == 0 || errno == ENOENT) continue;
    return system_error("file " + folder + "/" + name, "cannot be removed", errno);
  }
  return {};
}

bool is_subfolder_name(std::string_view name) noexcept {
  const auto hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return name.size() == 2 && hex(name[0]) && hex(name[1]);
}

bool is_stored_file_name(std::string_view name) noexcept { return digest_of_file(name).has_value(); }

std::string subfolder_of(const Digest& digest) { return digest.hex().substr(0, 2); }

std::string file_name_of(const Digest& digest, std::string_view suffix) { return digest.hex().append(suffix); }

namespace {

// A figure takes microseconds to change. Who has it for longer walks, or was stopped: nobody waits for that.
constexpr std::chrono::milliseconds patience{100};
constexpr std::size_t digits = 20;  // of the largest number there is
constexpr std::size_t numbers = 3;
constexpr std::size_t digits_bytes = numbers * (digits + 1);
constexpr std::size_t most_digits_bytes = digits_bytes + 1;  // a longer file is of a version that wrote more numbers

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

std::optional<DiskUse> DiskUseFile::use_of(std::string_view text) {
  if (text.size() != digits_bytes) return std::nullopt;
  const auto number = [&](std::size_t place) { return number_in(text.substr(place * (digits + 1), digits)); };
  const auto programs = number(0), published = number(1), walked = number(2);
  if (!programs || !published || !walked || *walked > *published) return std::nullopt;
  return DiskUse{*programs, *published, *walked};
}

std::optional<DiskUse> DiskUseFile::peek(int root) {
  const FileContents found = read_file(root, disk_use_name, most_digits_bytes);
  if (found.state != FileState::read) return std::nullopt;
  return use_of({reinterpret_cast<const char*>(found.bytes.data()), found.bytes.size()});
}

std::optional<DiskUse> DiskUseFile::read() const {
  std::array<char, most_digits_bytes> text;
  ssize_t got = -1;
  do got = pread(lock_.file(), text.data(), text.size(), 0);
  while (got < 0 && errno == EINTR);
  return got < 0 ? std::nullopt : use_of({text.data(), static_cast<std::size_t>(got)});
}

void DiskUseFile::write(const DiskUse& use) const noexcept {
  std::array<char, most_digits_bytes> text;
  const auto number = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
  std::snprintf(text.data(), text.size(), "%020llu %020llu %020llu\n", number(use.programs), number(use.published),
                number(use.walked));
  ssize_t put = -1;
  do put = pwrite(lock_.file(), text.data(), digits_bytes, 0);
  while (put < 0 && errno == EINTR);
  // A figure that could not be changed would be too low. The file of a version that wrote more numbers is cut.
  const bool whole = put == static_cast<ssize_t>(digits_bytes);
  static_cast<void>(ftruncate(lock_.file(), whole ? static_cast<off_t>(digits_bytes) : 0));
}

namespace {

constexpr std::chrono::milliseconds no_patience{0};
// Of one publication, where others write an eighth of the bound as fast as that is removed.
constexpr int most_walks = 8;

std::uint64_t less(std::uint64_t from, std::uint64_t what) noexcept { return from - std::min(from, what); }

}  // namespace

std::size_t DiskBound::published(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  untold_.published += bytes;
  if (use_) use_->add(bytes);
  std::size_t pruned = 0;
  for (int walks = 0; walks < most_walks; ++walks) {
    const Told told = tell();
    if (!is_walk_due(told)) break;
    const auto turn = told == Told::alone ? std::nullopt : BriefLock::take(root_, disk_walk_name, no_patience);
    // Who walks adds what was told meanwhile. He may also have been stopped: nobody exceeds the bound for that for
    // ever.
    if (!turn && told != Told::alone && use_->since_walk() <= most_bytes_ / 4) break;
    pruned += walk(told);
    if (told == Told::alone) break;
  }
  return pruned;
}

DiskBound::Told DiskBound::tell() {
  const auto file = figure_ == Figure::shared ? DiskUseFile::take(root_) : std::nullopt;
  if (!file) return Told::alone;
  const auto told = file->read();
  const bool known = told && surveyed_;
  use_ = told.value_or(DiskUse{});
  use_->add(untold_.published);
  use_->remove(untold_.removed);
  untold_ = {};
  file->write(*use_);
  return known ? Told::known : Told::unknown;
}

bool DiskBound::is_walk_due(Told told) const noexcept {
  if (told == Told::unknown || !surveyed_) return true;
  // Where a walk could not get below the bound, because what is in use takes it up, the next comes after some writing.
  return use_->since_walk() > most_bytes_ / 8 ||
         (use_->programs > most_bytes_ && use_->since_walk() > most_bytes_ / 64);
}

std::size_t DiskBound::walk(Told told) {
  const std::uint64_t published_before = told == Told::alone ? 0 : use_->published;
  Survey found = survey(root_, Sweep::yes);
  const std::size_t pruned = found.bytes > most_bytes_ ? prune(root_, found, most_bytes_ / 8 * 7) : 0;
  surveyed_ = true;
  settle({found.bytes}, published_before);
  return pruned;
}

void DiskBound::settle(DiskUse found, std::uint64_t published_before) {
  const auto file = figure_ == Figure::shared ? DiskUseFile::take(root_) : std::nullopt;
  if (file) {
    // Some of it the walk has seen as well: a figure that is too high costs a walk, one that is too low the bound.
    found.published = found.walked = published_before;
    if (const auto told = file->read()) found.add(less(told->published, published_before));
    file->write(found);
    untold_ = {};  // the walk has seen it
  }
  use_ = found;
}

void DiskBound::removed(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  untold_.removed += bytes;
  if (use_) use_->remove(bytes);
}

std::uint64_t DiskBound::bytes() {
  const std::lock_guard lock(mutex_);
  if (!use_ && figure_ == Figure::shared) use_ = DiskUseFile::peek(root_);
  if (!use_) {
    use_ = DiskUse{survey(root_, Sweep::no).bytes};
    surveyed_ = true;
  }
  return use_->programs;
}

}  // namespace kiln
