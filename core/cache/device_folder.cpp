#include "cache/device_folder.hpp"

#include "base/os/private_folder.hpp"
#include "cache/disk_bound.hpp"
#include "cache/key_material.hpp"
#include "cache/manifest.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <string_view>
#include <utility>
#include <vector>

#include <kiln/clock.hpp>

namespace kiln {
namespace {

constexpr std::size_t most_other_drivers = 32;

std::string file_name(const Digest& digest, StoredFile file) {
  switch (file) {
    case StoredFile::program:
      return file_name_of(digest, ".bin");
    case StoredFile::suspect:
      return file_name_of(digest, suspect_suffix);
    case StoredFile::quarantined:
      return file_name_of(digest, quarantined_suffix);
    default:
      return file_name_of(digest, ".meta");
  }
}

}  // namespace

DeviceFolder::DeviceFolder(int root, const DeviceInfo& device)
    : root_(root), name_(device_folder_name(device)), manifest_(encode_manifest(device)) {}

Result<int> DeviceFolder::open(Create create) {
  const std::lock_guard lock(mutex_);
  const bool removed = create == Create::yes && folder_ && is_removed(folder_.get());
  if (!folder_ || removed) {
    Result<UniqueFd> folder = open_subfolder(root_, name_, "folder " + name_, create);
    if (!folder) return folder.error();
    if (!*folder) return -1;
    manifest_seen_ = false;
    // In place: other threads may be using the number.
    if (!removed) {
      folder_ = std::move(*folder);
    } else if (dup3(folder->get(), folder_.get(), O_CLOEXEC) < 0) {
      return system_error("folder " + name_, "cannot be opened again", errno);
    }
  }
  if (create == Create::yes && !manifest_seen_) write_manifest();
  return folder_.get();
}

void DeviceFolder::write_manifest() {
  const FileContents there = read_file(folder_.get(), manifest_name, most_manifest_bytes);
  // What a power cut left of one is written anew; one that another version of Kiln wrote says as much and stays.
  const bool damaged = there.state == FileState::read && !driver_fields_of_manifest(text_of(there.bytes));
  manifest_seen_ = (there.state != FileState::absent && !damaged) ||
                   write_file(folder_.get(), manifest_name, std::as_bytes(std::span(manifest_))).ok();
}

Result<UniqueFd> DeviceFolder::open_subfolder_of(const Digest& digest, Create create) {
  const Result<int> folder = open(create);
  if (!folder) return folder.error();
  if (*folder < 0) return UniqueFd();
  const std::string name = subfolder_of(digest);
  Result<UniqueFd> subfolder = open_subfolder(*folder, name, "folder " + name_ + "/" + name, create);
  if (subfolder && *subfolder) subfolder_checked_[digest.bytes[0]].store(true, std::memory_order_relaxed);
  return subfolder;
}

FileContents DeviceFolder::read(const Digest& digest, StoredFile file, std::uint64_t most_bytes) {
  if (subfolder_checked_[digest.bytes[0]].load(std::memory_order_relaxed)) {
    const Result<int> whole = open(Create::no);
    if (whole) return read_file(*whole, subfolder_of(digest) + "/" + file_name(digest, file), most_bytes);
  }
  const Result<UniqueFd> folder = open_subfolder_of(digest, Create::no);
  if (!folder) return {FileState::unreadable, {}, folder.error().message};
  if (!*folder) return {FileState::absent, {}, {}};
  return read_file(folder->get(), file_name(digest, file), most_bytes);
}

Status DeviceFolder::write(const Digest& digest, StoredFile file, std::span<const std::byte> bytes) {
  const Result<UniqueFd> folder = open_subfolder_of(digest, Create::yes);
  if (!folder) return folder.error();
  return write_file(folder->get(), file_name(digest, file), bytes).within("folder " + name_);
}

Status DeviceFolder::update(const Digest& digest, StoredFile file, std::span<const std::byte> bytes) {
  if (subfolder_checked_[digest.bytes[0]].load(std::memory_order_relaxed)) {
    const Result<int> whole = open(Create::no);
    if (whole && overwrite_file(*whole, subfolder_of(digest) + "/" + file_name(digest, file), bytes)) return {};
  }
  return write(digest, file, bytes);
}

std::uint64_t DeviceFolder::remove(const Digest& digest) {
  const UniqueFd folder = open_subfolder_of(digest, Create::no).value_or(UniqueFd());
  if (!folder) return 0;
  std::uint64_t bytes = 0;
  for (const StoredFile file : {StoredFile::program, StoredFile::meta}) {
    const std::string name = file_name(digest, file);
    struct stat at {};
    if (fstatat(folder.get(), name.c_str(), &at, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (unlinkat(folder.get(), name.c_str(), 0) == 0) bytes += static_cast<std::uint64_t>(at.st_size);
  }
  return bytes;
}

std::optional<struct stat> DeviceFolder::look_at(const Digest& digest, StoredFile file) {
  const Result<int> folder = open(Create::no);
  if (!folder || *folder < 0) return std::nullopt;
  const std::string path = subfolder_of(digest) + "/" + file_name(digest, file);
  struct stat at {};
  if (fstatat(*folder, path.c_str(), &at, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(at.st_mode)) return std::nullopt;
  return at;
}

std::optional<std::int64_t> DeviceFolder::last_written_ns(const Digest& digest, StoredFile file) {
  const auto at = look_at(digest, file);
  return at ? std::optional(modified_ns(*at)) : std::nullopt;
}

bool DeviceFolder::rename(const Digest& digest, StoredFile from, StoredFile to) {
  const auto before = look_at(digest, from);
  const UniqueFd folder = open_subfolder_of(digest, Create::no).value_or(UniqueFd());
  if (!before || !folder) return false;
  const std::string old_name = file_name(digest, from);
  const std::string new_name = file_name(digest, to);
  // A power cut may have left both names on one file, and then renaming does nothing.
  const auto there = look_at(digest, to);
  const bool both_names = there && there->st_ino == before->st_ino;
  const int taken = both_names ? unlinkat(folder.get(), old_name.c_str(), 0)
                               : renameat(folder.get(), old_name.c_str(), folder.get(), new_name.c_str());
  if (taken != 0) return false;
  // It begins now; a program that is stored again keeps its time.
  if (to != StoredFile::program) utimensat(folder.get(), new_name.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
  return true;
}

bool DeviceFolder::set_aside(const Digest& digest, StoredFile as, std::int64_t written_by_s) {
  const auto stored = look_at(digest, StoredFile::program);
  return stored && stored->st_mtime <= written_by_s && rename(digest, StoredFile::program, as);
}

bool DeviceFolder::condemn(const Digest& digest) {
  return rename(digest, StoredFile::suspect, StoredFile::quarantined);
}

bool DeviceFolder::acquit(const Digest& digest) {
  if (!holds(digest, StoredFile::program)) return rename(digest, StoredFile::suspect, StoredFile::program);
  forget(digest, StoredFile::suspect);
  return true;
}

void DeviceFolder::forget(const Digest& digest, StoredFile aside) {
  const UniqueFd folder = open_subfolder_of(digest, Create::no).value_or(UniqueFd());
  if (folder) unlinkat(folder.get(), file_name(digest, aside).c_str(), 0);
}

bool DeviceFolder::quarantine_lasts(const Digest& digest) {
  const auto aside = look_at(digest, StoredFile::quarantined);
  return aside && std::abs(std::time(nullptr) - aside->st_mtime) < quarantine_s;  // the clock may have been set back
}

std::vector<Digest> DeviceFolder::digests() {
  std::vector<Digest> found;
  const Result<int> folder = open(Create::no);
  if (!folder || *folder < 0) return found;
  constexpr std::string_view suffix = ".bin";
  for (const std::string& part : names_in(*folder)) {
    const UniqueFd subfolder = existing_subfolder(*folder, part);
    if (!subfolder) continue;
    for (const std::string& name : names_in(subfolder.get())) {
      if (!name.ends_with(suffix)) continue;
      const auto digest = Digest::from_hex(std::string_view(name).substr(0, name.size() - suffix.size()));
      if (digest && subfolder_of(*digest) == part) found.push_back(*digest);
    }
  }
  return found;
}

bool DeviceFolder::held_under_another_driver(const ProgramKey& key) {
  for (const OtherDriver& other : other_drivers()) {
    const auto material = with_driver(key.material, other.driver_fields);
    if (!material) return false;
    const Digest digest = sha256(*material);
    const std::string path = other.name + "/" + subfolder_of(digest) + "/" + file_name(digest, StoredFile::program);
    struct stat at {};
    if (fstatat(root_, path.c_str(), &at, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(at.st_mode)) return true;
  }
  return false;
}

const std::vector<DeviceFolder::OtherDriver>& DeviceFolder::other_drivers() {
  const std::lock_guard lock(mutex_);
  if (other_drivers_) return *other_drivers_;
  other_drivers_.emplace();
  for (const std::string& name : names_in(root_)) {
    if (other_drivers_->size() == most_other_drivers) break;
    if (!is_device_folder_name(name) || !differ_in_driver_only(name, name_)) continue;
    const UniqueFd folder = existing_subfolder(root_, name);
    if (!folder) continue;
    const FileContents manifest = read_file(folder.get(), manifest_name, most_manifest_bytes);
    if (manifest.state != FileState::read) continue;
    if (auto fields = driver_fields_of_manifest(text_of(manifest.bytes))) {
      other_drivers_->push_back({name, std::move(*fields)});
    }
  }
  return *other_drivers_;
}

namespace {

constexpr std::size_t most_lines = 65536;
constexpr std::uint64_t most_meta_bytes = 64 << 10;
constexpr std::size_t room_to_grow = 64;  // bytes
constexpr double newest_weight = 0.25;    // of a process' first use among those before

std::int64_t seconds_since_1970() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(since).count();
}

// Who asks without saying what for takes nothing away from what is known.
void put(std::string& into, const std::string& news) {
  if (!news.empty()) into = news;
}

void merge(EntryMeta& into, const EntryMeta& news) {
  into.key = news.key;
  into.label = news.label;
  put(into.operation, news.operation);
  put(into.shape, news.shape);
  put(into.variant, news.variant);
  if (news.build_ms > 0) into.build_ms = news.build_ms;
  // Where the driver found its own product a first dispatch is a short one: the longest says what a new machine pays.
  into.first_dispatch_ms = std::max(into.first_dispatch_ms, news.first_dispatch_ms);
  if (news.warm_dispatch_ms > 0) {
    into.warm_dispatch_ms =
        into.warm_dispatch_ms > 0 ? std::min(into.warm_dispatch_ms, news.warm_dispatch_ms) : news.warm_dispatch_ms;
  }
  if (news.load_ms > 0) into.load_ms = news.load_ms;
  if (news.first_use_ms > 0) {
    into.first_use_ms = into.first_use_ms > 0
                            ? into.first_use_ms + newest_weight * (news.first_use_ms - into.first_use_ms)
                            : news.first_use_ms;
  }
  if (news.gflops > 0) into.gflops = news.gflops;
  into.times_used += news.times_used;
  into.runs += news.runs;
  if (news.last_used > 0) into.last_used = news.last_used;
}

EntryMeta meta_of(const FileContents& file) {
  if (file.state != FileState::read) return {};
  return decode_meta({reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size()}).value_or(EntryMeta{});
}

// So that counts can grow in their place: the file is rewritten in one call as long as its size stays.
void fill_up(std::string& text, std::size_t size_before) {
  const std::size_t size = text.size() <= size_before ? size_before : (text.size() / room_to_grow + 2) * room_to_grow;
  text.insert(text.size() - 1, size - text.size(), ' ');  // before the line's end
}

}  // namespace

EntryMeta stored_meta(DeviceFolder& folder, const Digest& digest) {
  return meta_of(folder.read(digest, StoredFile::meta, most_meta_bytes));
}

MetaLedger::MetaLedger() : opened_ns_(now_ns()) {}

MetaLedger::Line* MetaLedger::line(const Digest& digest) {
  const auto at = lines_.find(digest);
  return at == lines_.end() ? nullptr : &at->second;
}

void MetaLedger::note(const ProgramKey& key, DeviceFolder& folder, std::uint64_t build_ns) {
  const std::lock_guard lock(mutex_);
  if (lines_.size() >= most_lines && !lines_.contains(key.digest)) return;
  Line& noted = lines_[key.digest];
  noted.folder = &folder;
  noted.news.key = key.digest.hex();
  noted.news.label = key.label;
  put(noted.news.operation, key.purpose.operation);
  put(noted.news.shape, key.purpose.shape);
  put(noted.news.variant, key.purpose.variant);
  if (build_ns != 0) noted.news.build_ms = static_cast<double>(build_ns) / 1e6;
  noted.changed = true;
}

void MetaLedger::moved(const Digest& digest, DeviceFolder& to) {
  const std::lock_guard lock(mutex_);
  if (Line* noted = line(digest)) {
    noted->folder = &to;
    noted->changed = true;
  }
}

void MetaLedger::used(const Digest& digest, std::uint64_t times) {
  const std::lock_guard lock(mutex_);
  if (Line* noted = line(digest)) {
    noted->news.times_used += times;
    if (times != 0 && !std::exchange(noted->run_counted, true)) noted->news.runs = 1;
    noted->news.last_used = seconds_since_1970();
    noted->changed = true;
  }
}

void MetaLedger::asked_for(const Digest& digest) {
  const std::lock_guard lock(mutex_);
  Line* noted = line(digest);
  if (noted == nullptr || std::exchange(noted->asked_for, true)) return;
  noted->news.first_use_ms = static_cast<double>(now_ns() - opened_ns_) / 1e6;
  noted->changed = true;
}

void MetaLedger::loaded(const Digest& digest, std::uint64_t took_ns) {
  const std::lock_guard lock(mutex_);
  if (Line* noted = line(digest)) {
    noted->news.load_ms = static_cast<double>(took_ns) / 1e6;
    noted->changed = true;
  }
}

void MetaLedger::dispatched_first(const Digest& digest, std::uint64_t took_ns) {
  const std::lock_guard lock(mutex_);
  if (Line* noted = line(digest)) {
    const double ms = static_cast<double>(took_ns) / 1e6;
    EntryMeta& news = noted->news;
    news.first_dispatch_ms = std::max(news.first_dispatch_ms, ms);
    news.warm_dispatch_ms = news.warm_dispatch_ms > 0 ? std::min(news.warm_dispatch_ms, ms) : ms;
    noted->changed = true;
  }
}

void MetaLedger::rate(const Digest& digest, double gflops) {
  const std::lock_guard lock(mutex_);
  if (Line* noted = line(digest)) {
    noted->news.gflops = gflops;
    noted->changed = true;
  }
}

std::optional<MetaLedger::Line> MetaLedger::take(Line& line) {
  if (!std::exchange(line.changed, false)) return std::nullopt;
  Line news = line;
  line.news.times_used = 0;
  line.news.runs = 0;
  line.news.first_use_ms = 0;  // a process counts once
  return news;
}

std::uint64_t MetaLedger::write(const Digest& digest, const Line& news) {
  if (!news.folder->holds(digest, StoredFile::program)) return 0;  // it was removed: nothing of it comes back
  const FileContents before = news.folder->read(digest, StoredFile::meta, most_meta_bytes);
  EntryMeta meta = meta_of(before);
  merge(meta, news.news);
  std::string text = encode_meta(meta);
  fill_up(text, before.bytes.size());
  return news.folder->update(digest, StoredFile::meta, std::as_bytes(std::span(text))).ok() ? text.size() : 0;
}

std::uint64_t MetaLedger::flush(const Digest& digest) {
  std::optional<Line> news;
  {
    const std::lock_guard lock(mutex_);
    if (Line* noted = line(digest)) news = take(*noted);
  }
  return news ? write(digest, *news) : 0;
}

std::uint64_t MetaLedger::flush() {
  std::vector<std::pair<Digest, Line>> changed;
  {
    const std::lock_guard lock(mutex_);
    for (auto& [digest, noted] : lines_) {
      if (auto news = take(noted)) changed.emplace_back(digest, std::move(*news));
    }
  }
  std::uint64_t bytes = 0;
  for (const auto& [digest, news] : changed) bytes += write(digest, news);
  return bytes;
}

}  // namespace kiln
