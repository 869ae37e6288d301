// What a RemoteStore does by default, and the format of its index.
#include <kiln/regular_file.hpp>
#include <kiln/remote_store.hpp>

#include "base/os/atomic_file.hpp"
#include "base/os/file_lock.hpp"
#include "base/os/private_folder.hpp"
#include "cache/key_material.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include <fcntl.h>
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
  if (bytes.size() < index_header_bytes) {
    return corrupt("index: has " + std::to_string(bytes.size()) + " bytes, expected at least " +
                   std::to_string(index_header_bytes));
  }
  if (!std::ranges::equal(bytes.first(index_magic.size()), std::as_bytes(std::span(index_magic)))) {
    return corrupt("index: does not begin with " + std::string(index_magic));
  }
  const auto schema = read_little_endian<std::uint32_t>(bytes, 8);
  if (schema != index_schema) {
    return corrupt("index: has schema " + std::to_string(schema) + ", expected " + std::to_string(index_schema));
  }
  const std::uint64_t entries = read_little_endian<std::uint32_t>(bytes, 12);
  if (index_header_bytes + entries * index_entry_bytes != bytes.size()) {
    return corrupt("index: has " + std::to_string(bytes.size()) + " bytes, expected " +
                   std::to_string(index_header_bytes + entries * index_entry_bytes));
  }
  RemoteIndex index(static_cast<std::size_t>(entries));
  for (std::size_t i = 0; i < index.size(); ++i) {
    const auto entry = bytes.subspan(index_header_bytes + i * index_entry_bytes, index_entry_bytes);
    std::memcpy(index[i].key.bytes.data(), entry.data(), sizeof(Digest));
    index[i].build_ns = read_little_endian<std::uint64_t>(entry, sizeof(Digest));
    if (i != 0 && !(index[i - 1].key < index[i].key)) return corrupt("index: entries are not sorted by key");
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
  // A damaged index is left: readers ask for every program, where a new one would hide those of other writers.
  if (!found) return found.error();
  const RemoteIndex known = *found ? **found : RemoteIndex();
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
constexpr std::int64_t most_unfinished_age_s = 3600;  // then whoever wrote it is dead

Status over(const RemoteLimits& limits) {
  if (limits.stop != nullptr && limits.stop->load()) return cancelled("stopped on request");
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
    const Result<UniqueFd> folder = open_inner(folder_of(name), Create::no);
    if (!folder) return folder.error();
    if (!*folder) return Object();
    const Result<RegularFile> file = RegularFile::open_at(folder->get(), file_of(name), SymbolicLink::refuse);
    if (!file && file.error().code == StatusCode::not_found) return Object();
    if (!file) return file.error().within("folder " + (folder_ / folder_of(name)).string());
    auto bytes = file->contents(limits.most_bytes);
    if (!bytes) return std::move(bytes).error();
    return Object(std::move(*bytes));
  } catch (...) {
    return caught();
  }

  Status put(const std::string& name, std::span<const std::byte> bytes, const RemoteLimits& limits) noexcept override
      try {
    if (Status status = over(limits); !status.ok()) return status;
    const Result<UniqueFd> folder = open_inner(folder_of(name), Create::yes);
    if (!folder) return folder.error();
    sweep_once(folder->get(), folder_of(name));
    const std::string who = "folder " + (folder_ / folder_of(name)).string();
    // Readable as any new file: other users of the share read it.
    Result<NewFile> file = NewFile::create(folder->get(), file_of(name), 0666);
    if (!file) return file.error().within(who);
    Status status = file->write(bytes);
    if (status.ok()) status = file->commit();
    return status.ok() ? status : status.within(who);
  } catch (...) {
    return caught();
  }

  Status add_to_index(const std::string& folder, const RemoteIndex& more, const RemoteLimits& limits) noexcept override
      try {
    const Result<UniqueFd> opened = open_inner(folder, Create::yes);
    if (!opened) return opened.error();
    // Without the lock an entry of another writer may be lost: a build, and no wrong program.
    const auto lock = BriefLock::take(opened->get(), lock_name, index_patience);
    const auto found = index(folder, limits);
    if (!found && found.error().code != StatusCode::corrupt) return found.error();
    const bool is_there = found && *found;
    RemoteIndex known;
    if (is_there) known = **found;
    // Of a damaged or lost index the files tell, but for the build times.
    for (const std::string& name : is_there ? std::vector<std::string>() : names_in(opened->get())) {
      if (const auto key = Digest::from_hex(name)) known.push_back({*key, 0});
    }
    const RemoteIndex all = merged_index(known, more);
    if (is_there && all == known) return {};
    return put(remote_index_name(folder), encode_remote_index(all), limits);
  } catch (...) {
    return caught();
  }

 private:
  static std::string folder_of(const std::string& name) { return name.substr(0, name.find('/')); }
  static std::string file_of(const std::string& name) { return name.substr(name.find('/') + 1); }

  // Not through a symbolic link: others who can write to the share could lead what is written here anywhere. Empty:
  // there is no such folder. A missing share is an error.
  Result<UniqueFd> open_inner(const std::string& name, Create create) const {
    const UniqueFd share(open(folder_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!share && errno == ENOENT) return unavailable("folder " + folder_.string() + ": does not exist");
    if (!share) return file_failure(folder_, "cannot be opened", errno);
    const std::filesystem::path path = folder_ / name;
    if (create == Create::yes && mkdirat(share.get(), name.c_str(), 0777) != 0 && errno != EEXIST) {
      return file_failure(path, "cannot be created", errno);
    }
    UniqueFd inner(openat(share.get(), name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!inner && errno != ENOENT) return file_failure(path, "cannot be opened, or is a symbolic link", errno);
    return inner;
  }

  // Removes what writers that were killed left in the folder, at the first write to it.
  void sweep_once(int folder, const std::string& name) {
    {
      const std::lock_guard lock(mutex_);
      if (!swept_.insert(name).second) return;
    }
    const std::int64_t oldest_s = std::time(nullptr) - most_unfinished_age_s;
    for (const std::string& file : names_in(folder)) {
      struct stat found {};
      if (!NewFile::is_temporary(file) || fstatat(folder, file.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0) continue;
      if (S_ISREG(found.st_mode) && found.st_uid == geteuid() && found.st_mtime < oldest_s) {
        unlinkat(folder, file.c_str(), 0);
      }
    }
  }

  const std::filesystem::path folder_;
  std::mutex mutex_;
  std::set<std::string> swept_;  // device folders; guarded by mutex_
};

}  // namespace

Result<std::unique_ptr<RemoteStore>> open_file_store(const RemoteContext& context) {
  if (!context.url.starts_with(file_scheme) || context.url.size() <= file_scheme.size() ||
      context.url[file_scheme.size()] != '/') {
    return invalid_argument("remote '" + context.url +
                            "': expected file:// and an absolute path, such as file:///mnt/share");
  }
  return std::unique_ptr<RemoteStore>(std::make_unique<FileStore>(context.url.substr(file_scheme.size())));
}

}  // namespace kiln
