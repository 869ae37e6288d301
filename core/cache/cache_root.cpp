#include "cache/cache_root.hpp"

#include "base/os/private_folder.hpp"
#include "base/secret_key.hpp"
#include "cache/disk_bound.hpp"
#include "cache/entry_format.hpp"
#include "cache/manifest.hpp"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <map>
#include <set>
#include <tuple>

namespace kiln {

namespace {

constexpr std::uint64_t most_text_bytes = 64 << 10;  // of a .meta or a manifest

}  // namespace

Result<CacheRoot> CacheRoot::open(const CacheConfig& cache) {
  if (cache.directory.empty()) return invalid_argument(no_cache_folder().message);
  CacheRoot root;
  Result<UniqueFd> stored = open_folder(cache.directory, Create::no);
  if (!stored) return stored.error();
  root.stored_ = std::move(*stored);
  if (!root.stored_) return root;
  Result<UniqueFd> pending =
      open_subfolder(root.stored_.get(), pending_name, "folder " + std::string(pending_name), Create::no);
  if (!pending) return pending.error();
  root.pending_ = std::move(*pending);
  return root;
}

Result<CacheRoot> CacheRoot::open_to_write(const CacheConfig& cache) {
  if (cache.read_only) {
    return invalid_argument("cache " + cache.directory.string() +
                            ": cannot be changed because [cache] read_only is true");
  }
  return open(cache);
}

Survey CacheRoot::survey(Area area, Sweep sweep) const {
  return of(area) < 0 ? Survey{} : kiln::survey(of(area), sweep);
}

FileContents CacheRoot::read(Area area, const std::string& folder, const Digest& digest, const char* suffix,
                             std::uint64_t most_bytes) const {
  const Result<UniqueFd> device = open_subfolder(of(area), folder, "folder " + folder, Create::no);
  if (!device) return {FileState::unreadable, {}, device.error().message};
  if (!*device) return {FileState::absent, {}, {}};
  const std::string inner = subfolder_of(digest);
  const Result<UniqueFd> subfolder = open_subfolder(device->get(), inner, "folder " + folder + "/" + inner, Create::no);
  if (!subfolder) return {FileState::unreadable, {}, subfolder.error().message};
  if (!*subfolder) return {FileState::absent, {}, {}};
  return read_file(subfolder->get(), file_name_of(digest, suffix), most_bytes);
}

FileContents CacheRoot::read_program(Area area, const std::string& folder, const Digest& digest) const {
  return read(area, folder, digest, ".bin", EntryLimits{}.file());
}

std::string CacheRoot::read_meta(Area area, const std::string& folder, const Digest& digest) const {
  const FileContents file = read(area, folder, digest, ".meta", most_text_bytes);
  return std::string(text_of(file.bytes));
}

CachedProgram CacheRoot::describe(Area area, const std::string& folder, const StoredEntry& entry) const {
  CachedProgram program;
  program.key = entry.digest;
  program.folder = folder;
  program.bytes = entry.bytes;
  program.last_used_s = entry.last_used_ns / 1'000'000'000;
  program.pending = area == Area::pending;
  if (const auto meta = decode_meta(read_meta(area, folder, entry.digest))) {
    program.label = meta->label;
    program.purpose = {meta->operation, meta->shape, meta->variant};
    program.build_ms = meta->build_ms;
    program.first_dispatch_ms = meta->first_dispatch_ms;
    program.gflops = meta->gflops;
    program.times_used = meta->times_used;
  }
  return program;
}

CacheDevice CacheRoot::device(Area area, const std::string& folder) const {
  CacheDevice device;
  device.folder = folder;
  const UniqueFd opened = existing_subfolder(of(area), folder);
  if (!opened) return device;
  const FileContents manifest = read_file(opened.get(), manifest_name, most_text_bytes);
  ManifestWords words = words_of_manifest(text_of(manifest.bytes));
  device.device = std::move(words.device);
  device.kind = std::move(words.kind);
  device.driver = std::move(words.driver);
  return device;
}

Status no_cache_folder() {
  return not_found(
      "no cache folder is configured. Set HOME or XDG_CACHE_HOME to an absolute path, or set KILN_CACHE_DIR or "
      "[cache] directory");
}

Status check_cache_folder(const CacheConfig& cache) {
  if (cache.directory.empty()) return no_cache_folder();
  const Result<UniqueFd> folder = open_folder(cache.directory, cache.read_only ? Create::no : Create::yes);
  if (!folder) return folder.error();
  if (cache.read_only) return {};
  const std::string who = "folder " + cache.directory.string();
  if (faccessat(folder->get(), ".", W_OK | X_OK, AT_EACCESS) != 0) {
    return system_error(who, "cannot be written", errno);
  }
  // A full disk is seen here, once, instead of by each part of Kiln.
  Result<NewFile> tried = NewFile::create(folder->get(), "room");
  constexpr std::array<std::byte, 4096> block{};
  const Status written = tried ? tried->write(block) : tried.error();
  return written.ok() ? Status() : written.within(who);
}

Status check_cache_key(const CacheConfig& cache) {
  if (cache.key_file.empty()) return no_key_file();
  const Result<SecretKey> key = read_secret_key(cache.key_file, IfMissing::fail);
  return key ? Status() : key.error();
}

bool holds_programs(const CacheConfig& cache) {
  const UniqueFd folder = open_folder(cache.directory, Create::no).value_or(UniqueFd());
  return folder && std::ranges::any_of(names_in(folder.get()), is_device_folder_name);
}

Result<bool> cache_exists(const CacheConfig& cache) {
  const Result<CacheRoot> root = CacheRoot::open(cache);
  if (!root) return root.error();
  return root->exists();
}

std::vector<AsideProgram> CacheRoot::aside(const Survey& found) const {
  std::vector<AsideProgram> programs;
  for (const AsideEntry& entry : found.aside) {
    const std::string& folder = found.folders[entry.folder];
    StoredEntry stored;
    stored.digest = entry.digest;
    AsideProgram program{entry.digest,
                         folder,
                         describe(Area::stored, folder, stored).label,
                         entry.quarantined,
                         entry.since_s,
                         entry.since_s + quarantine_s,
                         {}};
    program.why = entry.quarantined ? "a process that loaded the program died or timed out"
                                    : "the program was being loaded when a process died";
    programs.push_back(std::move(program));
  }
  std::ranges::sort(programs, {}, [](const AsideProgram& one) { return std::tie(one.label, one.key, one.folder); });
  return programs;
}

FileContents CacheRoot::read_aside(const AsideProgram& program) const {
  const std::string_view suffix = program.quarantined ? quarantined_suffix : suspect_suffix;
  return read(Area::stored, program.folder, program.key, std::string(suffix).c_str(), EntryLimits{}.file());
}

Status CacheRoot::release(const AsideProgram& program) const {
  const std::string who = "program " + program.key.hex();
  const Result<UniqueFd> device = open_subfolder(stored_.get(), program.folder, program.folder, Create::no);
  if (!device) return device.error();
  if (!*device) return {};
  const std::string below = subfolder_of(program.key);
  const Result<UniqueFd> folder = open_subfolder(device->get(), below, program.folder + "/" + below, Create::no);
  if (!folder) return folder.error();
  if (!*folder) return {};
  const std::string from = file_name_of(program.key, program.quarantined ? quarantined_suffix : suspect_suffix);
  const std::string to = file_name_of(program.key, ".bin");
  struct stat at {};
  // An empty file keeps the program of a layer or remote out, and has no program.
  const bool is_empty = fstatat(folder->get(), from.c_str(), &at, AT_SYMLINK_NOFOLLOW) == 0 && at.st_size == 0;
  if (!is_empty && renameat2(folder->get(), from.c_str(), folder->get(), to.c_str(), RENAME_NOREPLACE) == 0) return {};
  if ((is_empty || errno == EEXIST) && unlinkat(folder->get(), from.c_str(), 0) == 0) return {};
  return errno == ENOENT ? Status() : system_error(who, "cannot be released", errno);
}

EntryVerdict judge(const FileContents& file, const Digest& name, const EntryKey& key) {
  switch (file.state) {
    case FileState::read:
      break;
    case FileState::foreign:
      return {Rejection::foreign, file.why};
    case FileState::misplaced:
      return {Rejection::tampered, file.why};
    case FileState::absent:
    case FileState::too_large:
    case FileState::unreadable:
    case FileState::invalid:
      return {Rejection::corrupt, file.why};
  }
  DecodedEntry decoded = decode_entry(file.bytes, key);
  if (decoded.rejection != Rejection::none) return {decoded.rejection, std::move(decoded.why)};
  if (sha256(decoded.entry.material) != name) return {Rejection::tampered, "the file holds the program of another key"};
  const auto payload = inflate_payload(decoded.entry);
  if (!payload) return {Rejection::corrupt, payload.error().message};
  if (const auto program = decode_payload({}, *payload); !program) {
    return {Rejection::corrupt, program.error().message};
  }
  return {};
}

namespace {

constexpr std::int64_t ns_of_second = 1'000'000'000;

}  // namespace

Result<PendingArea::Opened*> PendingArea::open() {
  if (opened_ != nullptr && !is_removed(opened_->folder.get())) return opened_.get();
  const std::string who = "folder " + std::string(pending_name);
  Result<UniqueFd> folder = open_subfolder(root_, pending_name, who, Create::yes);
  if (!folder) return folder.error();
  if (opened_ != nullptr) {
    // In place: the folders of devices know the number.
    if (dup3(folder->get(), opened_->folder.get(), O_CLOEXEC) < 0) {
      return system_error(who, "cannot be opened again", errno);
    }
    return opened_.get();
  }
  const int fd = folder->get();
  expire_pending(fd, std::time(nullptr));
  opened_ = std::unique_ptr<Opened>(new Opened{std::move(*folder), {fd, most_bytes_, Figure::own}});
  return opened_.get();
}

Result<DeviceFolder*> PendingArea::keep(const DeviceInfo& device, const Digest& digest,
                                        std::span<const std::byte> bytes) {
  Opened* area = nullptr;
  DeviceFolder* folder = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const Result<Opened*> opened = open();
    if (!opened) return opened.error();
    area = *opened;
    auto& made = folders_[device_folder_name(device)];
    if (made == nullptr) made = std::make_unique<DeviceFolder>(area->folder.get(), device);
    folder = made.get();
  }
  if (Status status = folder->write(digest, StoredFile::program, bytes); !status.ok()) {
    return status.within(pending_name);
  }
  (void)area->bound.published(bytes.size());
  return folder;
}

void PendingArea::remove(const std::string& folder, const Digest& digest) {
  const std::lock_guard lock(mutex_);
  if (const auto at = folders_.find(folder); at != folders_.end()) opened_->bound.removed(at->second->remove(digest));
}

void expire_pending(int pending, std::int64_t now_s) {
  const Survey found = survey(pending, Sweep::yes);
  for (const StoredEntry& entry : found.entries) {
    if (now_s - entry.last_used_ns / ns_of_second <= pending_s) continue;
    // What cannot be removed is tried again by the next.
    static_cast<void>(remove_entry(pending, found.folders[entry.folder], entry.digest));
  }
}

namespace {

// The stored folder `device`/hh, made where it is missing, with the manifest of the pending one.
Result<UniqueFd> stored_folder(const CacheRoot& root, int pending_device, const std::string& device,
                               const std::string& inner) {
  Result<UniqueFd> folder = open_subfolder(root.of(Area::stored), device, "folder " + device, Create::yes);
  if (!folder) return folder.error();
  struct stat at {};
  if (fstatat(folder->get(), manifest_name, &at, AT_SYMLINK_NOFOLLOW) != 0) {
    const FileContents manifest = read_file(pending_device, manifest_name, most_manifest_bytes);
    // A lost manifest costs words, never a program.
    if (manifest.state == FileState::read) static_cast<void>(write_file(folder->get(), manifest_name, manifest.bytes));
  }
  return open_subfolder(folder->get(), inner, "folder " + device + "/" + inner, Create::yes);
}

// .bin, then .meta, which stays where there is one already.
Status move_files(int from, int to, const Digest& digest, const std::string& who) {
  const std::string program = file_name_of(digest, ".bin"), meta = file_name_of(digest, ".meta");
  utimensat(from, program.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);  // stored now
  if (renameat(from, program.c_str(), to, program.c_str()) != 0) {
    return system_error("file " + who + "/" + program, "cannot be moved out of pending", errno);
  }
  struct stat at {};
  if (fstatat(to, meta.c_str(), &at, AT_SYMLINK_NOFOLLOW) == 0 || renameat(from, meta.c_str(), to, meta.c_str()) != 0) {
    unlinkat(from, meta.c_str(), 0);
  }
  return {};
}

}  // namespace

Result<Published> publish_pending(const CacheRoot& root, const std::string& folder, const Digest& digest,
                                  const EntryKey& key) {
  const FileContents file = root.read_program(Area::pending, folder, digest);
  if (file.state == FileState::absent) return Published{Publication::gone, {}, {}, {}};
  EntryVerdict verdict = judge(file, digest, key);
  if (verdict.reason != Rejection::none) {
    if (Status status = remove_entry(root.of(Area::pending), folder, digest); !status.ok()) return status;
    return Published{Publication::rejected, 0, verdict.reason, std::move(verdict.why)};
  }
  const FileContents there = root.read_program(Area::stored, folder, digest);
  if (there.state == FileState::read && judge(there, digest, key).reason == Rejection::none) {
    if (Status status = remove_entry(root.of(Area::pending), folder, digest); !status.ok()) return status;
    return Published{Publication::already, {}, {}, {}};
  }
  const std::string inner = subfolder_of(digest);
  const Result<UniqueFd> device = open_subfolder(root.of(Area::pending), folder, "folder " + folder, Create::no);
  if (!device) return device.error();
  if (!*device) return Published{Publication::gone, {}, {}, {}};
  const Result<UniqueFd> from = open_subfolder(device->get(), inner, "folder " + folder + "/" + inner, Create::no);
  if (!from) return from.error();
  if (!*from) return Published{Publication::gone, {}, {}, {}};
  const Result<UniqueFd> to = stored_folder(root, device->get(), folder, inner);
  if (!to) return to.error();
  if (Status status = move_files(from->get(), to->get(), digest, folder + "/" + inner); !status.ok()) return status;
  // What was set aside because a process died of it has been built anew.
  unlinkat(to->get(), file_name_of(digest, quarantined_suffix).c_str(), 0);
  return Published{Publication::stored, file.bytes.size(), {}, {}};
}

}  // namespace kiln
