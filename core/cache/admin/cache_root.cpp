#include "cache/admin/cache_root.hpp"

#include "cache/folder/key_file_place.hpp"
#include "cache/folder/open_folder.hpp"
#include "cache/format/entry_format.hpp"
#include "cache/format/entry_meta.hpp"
#include "cache/format/manifest.hpp"

namespace kiln {
namespace {

constexpr std::uint64_t most_text_bytes = 64 << 10;  // of a .meta or a manifest

std::string_view text_of(const FileContents& file) {
  return {reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size()};
}

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
  return std::string(text_of(file));
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
  ManifestWords words = words_of_manifest(text_of(manifest));
  device.device = std::move(words.device);
  device.kind = std::move(words.kind);
  device.driver = std::move(words.driver);
  return device;
}

Result<bool> cache_exists(const CacheConfig& cache) {
  const Result<CacheRoot> root = CacheRoot::open(cache);
  if (!root) return root.error();
  return root->exists();
}

}  // namespace kiln
