// What a RemoteStore does by default, and the format of its index.
#include <kiln/regular_file.hpp>
#include <kiln/remote_store.hpp>

#include "base/os/atomic_file.hpp"
#include "base/os/file_lock.hpp"
#include "cache/key_material.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kiln {
namespace {

constexpr std::string_view index_magic = "KILNINDX";
constexpr std::uint32_t index_schema = 1;
constexpr std::size_t index_header_bytes = 16, index_entry_bytes = 40;
constexpr std::uint64_t most_index_bytes = 16ull << 20;  // 400,000 programs

}  // namespace

RemoteStore::~RemoteStore() = default;
RemoteLeases::~RemoteLeases() = default;

std::vector<std::byte> encode_remote_index(const RemoteIndex& index) {
  std::vector<std::byte> bytes;
  bytes.reserve(index_header_bytes + index.size() * index_entry_bytes);
  const auto magic = std::as_bytes(std::span(index_magic));
  bytes.insert(bytes.end(), magic.begin(), magic.end());
  append_little_endian(bytes, index_schema);
  append_little_endian(bytes, static_cast<std::uint32_t>(index.size()));
  for (const RemoteIndexEntry& entry : index) {
    const auto key = std::as_bytes(std::span(entry.key.bytes));
    bytes.insert(bytes.end(), key.begin(), key.end());
    append_little_endian(bytes, entry.build_ns);
  }
  return bytes;
}

Result<RemoteIndex> decode_remote_index(std::span<const std::byte> bytes) {
  if (bytes.size() < index_header_bytes ||
      !std::ranges::equal(bytes.first(index_magic.size()), std::as_bytes(std::span(index_magic)))) {
    return corrupt("index: its magic is not " + std::string(index_magic));
  }
  const auto schema = read_little_endian<std::uint32_t>(bytes, 8);
  if (schema != index_schema) {
    return corrupt("index: schema " + std::to_string(schema) + ", expected " + std::to_string(index_schema));
  }
  const std::uint64_t entries = read_little_endian<std::uint32_t>(bytes, 12);
  if (index_header_bytes + entries * index_entry_bytes != bytes.size()) {
    return corrupt("index: bytes " + std::to_string(bytes.size()) + ", expected " +
                   std::to_string(index_header_bytes + entries * index_entry_bytes));
  }
  RemoteIndex index(static_cast<std::size_t>(entries));
  for (std::size_t i = 0; i < index.size(); ++i) {
    const auto entry = bytes.subspan(index_header_bytes + i * index_entry_bytes, index_entry_bytes);
    std::memcpy(index[i].key.bytes.data(), entry.data(), sizeof(Digest));
    index[i].build_ns = read_little_endian<std::uint64_t>(entry, sizeof(Digest));
    if (i != 0 && !(index[i - 1].key < index[i].key)) return corrupt("index: its entries are not sorted");
  }
  return index;
}

RemoteIndex merged_index(const RemoteIndex& index, const RemoteIndex& more) {
  RemoteIndex all = more;  // stable: of equal keys the one of `more` stays first
  all.insert(all.end(), index.begin(), index.end());
  std::ranges::stable_sort(all, {}, &RemoteIndexEntry::key);
  const auto same_key = [](const RemoteIndexEntry& a, const RemoteIndexEntry& b) { return a.key == b.key; };
  all.erase(std::unique(all.begin(), all.end(), same_key), all.end());
  return all;
}

std::string remote_index_name(std::string_view folder) { return std::string(folder) + "/index"; }

Status RemoteStore::get_many(std::span<const std::string> names, const RemoteLimits& limits,
                             const OnObject& on_object) noexcept try {
  for (std::size_t place = 0; place < names.size(); ++place) {
    auto object = get(names[place], limits);
    if (!object) return std::move(object).error();
    if (*object) on_object(place, std::move(**object));
  }
  return {};
} catch (...) {
  return caught();
}

Result<std::optional<RemoteIndex>> RemoteStore::index(const std::string& folder, const RemoteLimits& limits) noexcept
    try {
  RemoteLimits of_index = limits;
  of_index.most_bytes = most_index_bytes;
  const auto object = get(remote_index_name(folder), of_index);
  if (!object) return object.error();
  if (!*object) return std::optional<RemoteIndex>();
  auto index = decode_remote_index(**object);
  if (!index) return std::move(index).error();
  return std::optional(std::move(*index));
} catch (...) {
  return caught();
}

Status RemoteStore::add_to_index(const std::string& folder, const RemoteIndex& more,
                                 const RemoteLimits& limits) noexcept try {
  const auto found = index(folder, limits);
  // A damaged index is replaced: it is written by every writer, so it recovers.
  if (!found && found.error().code != StatusCode::corrupt) return found.error();
  const RemoteIndex known = found && *found ? **found : RemoteIndex();
  const RemoteIndex all = merged_index(known, more);
  if (all == known) return {};
  return put(remote_index_name(folder), encode_remote_index(all), limits);
} catch (...) {
  return caught();
}

std::chrono::seconds RemoteStore::retry_after() const noexcept { return {}; }

// The store of file:// URLs: objects are files below a folder, which may be on a network file system.

namespace {

constexpr std::string_view file_scheme = "file://";
constexpr const char* lock_name = ".index.lock";
constexpr std::chrono::milliseconds index_patience{500};
constexpr std::string_view unfinished_prefix = ".kiln-";  // of objects that are being written
constexpr std::chrono::hours most_unfinished_age{1};      // then whoever wrote it is dead

Status over(const RemoteLimits& limits) {
  if (limits.stop != nullptr && limits.stop->load()) return cancelled("stopped");
  if (limits.deadline.passed()) return timed_out("the deadline has passed");
  return {};
}

class FileStore final : public RemoteStore {
 public:
  explicit FileStore(std::filesystem::path folder) : folder_(std::move(folder)) {}

  Result<std::optional<std::vector<std::byte>>> get(const std::string& name,
                                                    const RemoteLimits& limits) noexcept override try {
    using Object = std::optional<std::vector<std::byte>>;
    if (Status status = over(limits); !status.ok()) return status;
    const Result<RegularFile> file = RegularFile::open(folder_ / name);
    if (!file) {
      if (file.error().code != StatusCode::not_found) return file.error();
      // A missing program is no failure, but a missing share is.
      struct stat at {};
      if (stat(folder_.c_str(), &at) == 0 && S_ISDIR(at.st_mode)) return Object();
      return unavailable("folder " + folder_.string() + ": does not exist");
    }
    auto bytes = file->contents(limits.most_bytes);
    if (!bytes) return std::move(bytes).error();
    return Object(std::move(*bytes));
  } catch (...) {
    return caught();
  }

  Status put(const std::string& name, std::span<const std::byte> bytes, const RemoteLimits& limits) noexcept override
      try {
    if (Status status = over(limits); !status.ok()) return status;
    const std::filesystem::path path = folder_ / name;
    if (Status status = make_folder(path.parent_path()); !status.ok()) return status;
    sweep_once(path.parent_path());
    // Not AtomicFile: it syncs, and the signature of an object detects damage after a power failure.
    std::string unfinished = (path.parent_path() / (std::string(unfinished_prefix) + "XXXXXX")).string();
    const UniqueFd file(mkostemp(unfinished.data(), O_CLOEXEC));
    if (!file) return file_failure(path, "cannot be created", errno);
    Status status = write_all(file.get(), path, bytes);
    // As a new file would have it: other users of the share read it.
    if (status.ok() && fchmod(file.get(), 0666 & ~file_mask()) != 0) status = file_failure(path, "mode", errno);
    if (status.ok() && rename(unfinished.c_str(), path.c_str()) != 0) {
      status = file_failure(path, "cannot be given its name", errno);
    }
    if (!status.ok()) unlink(unfinished.c_str());
    return status;
  } catch (...) {
    return caught();
  }

  Status add_to_index(const std::string& folder, const RemoteIndex& more, const RemoteLimits& limits) noexcept override
      try {
    const std::filesystem::path path = folder_ / folder;
    if (Status status = make_folder(path); !status.ok()) return status;
    // Without the lock an entry of another writer may be lost: a build, and no wrong program.
    const UniqueFd opened(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const auto lock = opened ? BriefLock::take(opened.get(), lock_name, index_patience) : std::optional<BriefLock>();
    return RemoteStore::add_to_index(folder, more, limits);
  } catch (...) {
    return caught();
  }

 private:
  // Removes what writers that were killed left in the folder, at the first write to it.
  void sweep_once(const std::filesystem::path& folder) {
    {
      const std::lock_guard lock(mutex_);
      if (!swept_.insert(folder).second) return;
    }
    const auto oldest = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now() - most_unfinished_age);
    std::error_code error;
    for (auto at = std::filesystem::directory_iterator(folder, error); !error && at != std::filesystem::end(at);
         at.increment(error)) {
      if (!at->path().filename().string().starts_with(unfinished_prefix)) continue;
      struct stat found {};
      if (lstat(at->path().c_str(), &found) != 0 || !S_ISREG(found.st_mode) || found.st_uid != geteuid()) continue;
      if (found.st_mtime < oldest) unlink(at->path().c_str());
    }
  }

  // The umask of this process, without changing it for the other threads.
  static mode_t file_mask() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("Umask:")) return static_cast<mode_t>(std::strtoul(line.c_str() + 6, nullptr, 8));
    }
    return 077;
  }

  Status make_folder(const std::filesystem::path& path) const {
    if (mkdir(path.c_str(), 0777) == 0 || errno == EEXIST) return {};
    if (errno == ENOENT) return unavailable("folder " + folder_.string() + ": does not exist");
    return file_failure(path, "cannot be created", errno);
  }

  static Status write_all(int file, const std::filesystem::path& path, std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t count = write(file, bytes.data(), bytes.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return file_failure(path, "cannot be written", count < 0 ? errno : ENOSPC);
      bytes = bytes.subspan(static_cast<std::size_t>(count));
    }
    return {};
  }

  const std::filesystem::path folder_;
  std::mutex mutex_;
  std::set<std::filesystem::path> swept_;  // guarded by mutex_
};

}  // namespace

Result<std::unique_ptr<RemoteStore>> open_file_store(const RemoteContext& context) {
  if (!context.url.starts_with(file_scheme) || context.url.size() <= file_scheme.size() ||
      context.url[file_scheme.size()] != '/') {
    return invalid_argument("remote '" + context.url + "': expected file:// and an absolute path: file:///mnt/share");
  }
  return std::unique_ptr<RemoteStore>(std::make_unique<FileStore>(context.url.substr(file_scheme.size())));
}

}  // namespace kiln
