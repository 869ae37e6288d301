#include "cache/cache_root.hpp"

#include "base/os/private_folder.hpp"
#include "base/secret_key.hpp"
#include "cache/entry_format.hpp"
#include "cache/entry_meta.hpp"
#include "cache/manifest.hpp"
#include "cache/program_payload.hpp"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
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
    return invalid_argument("cache " + cache.directory.string() + ": [cache] read_only is true: nothing is changed");
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
  const Result<UniqueFd> opened = open_subfolder(of(area), folder, "folder " + folder, Create::no);
  if (!opened || !*opened) return device;
  const FileContents manifest = read_file(opened->get(), manifest_name, most_text_bytes);
  ManifestWords words = words_of_manifest(text_of(manifest.bytes));
  device.device = std::move(words.device);
  device.kind = std::move(words.kind);
  device.driver = std::move(words.driver);
  return device;
}

Status no_cache_folder() {
  return not_found(
      "no cache folder is configured (expected HOME or XDG_CACHE_HOME set to an absolute path, KILN_CACHE_DIR, or "
      "[cache] directory)");
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
  const Result<UniqueFd> folder = open_folder(cache.directory, Create::no);
  return folder && *folder && std::ranges::any_of(names_in(folder->get()), is_device_folder_name);
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
    program.why = entry.quarantined ? "a process died of it or hung" : "it was being loaded when a process died";
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
  if (renameat2(folder->get(), from.c_str(), folder->get(), to.c_str(), RENAME_NOREPLACE) == 0) return {};
  if (errno == EEXIST && unlinkat(folder->get(), from.c_str(), 0) == 0) return {};
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
  if (sha256(decoded.entry.material) != name) return {Rejection::tampered, "it holds the program of another key"};
  const auto payload = inflate_payload(decoded.entry);
  if (!payload) return {Rejection::corrupt, payload.error().message};
  if (const auto program = decode_payload({}, *payload); !program) {
    return {Rejection::corrupt, program.error().message};
  }
  return {};
}

}  // namespace kiln
