#include "cache/folder/read_file.hpp"

#include "cache/folder/open_folder.hpp"

#include <kiln/regular_file.hpp>

#include <unistd.h>

#include <utility>

namespace kiln {
namespace {

FileContents without_bytes(FileState state, std::string why) { return {state, {}, std::move(why), 0}; }

}  // namespace

std::int64_t modified_ns(const struct stat& at) noexcept {
  return std::int64_t{at.st_mtim.tv_sec} * 1'000'000'000 + at.st_mtim.tv_nsec;
}

FileContents read_file(int folder, const std::string& name, std::uint64_t most_bytes) {
  const Result<RegularFile> file = RegularFile::open_at(folder, name, SymbolicLink::refuse);
  if (!file) {
    const Status& why = file.error();
    if (why.code == StatusCode::not_found) return without_bytes(FileState::absent, {});
    return without_bytes(why.code == StatusCode::invalid_argument ? FileState::misplaced : FileState::unreadable,
                         why.message);
  }
  const struct stat& at = file->facts();
  if (!is_trusted_owner(at.st_uid)) {
    return without_bytes(FileState::foreign,
                         "belongs to user " + std::to_string(at.st_uid) + ", expected " + std::to_string(geteuid()));
  }
  if (file->bytes() > most_bytes) {
    FileContents large =
        without_bytes(FileState::too_large, "has " + std::to_string(file->bytes()) + " bytes, expected at most " +
                                                std::to_string(most_bytes));
    large.modified_ns = modified_ns(at);
    return large;
  }
  Result<std::vector<std::byte>> bytes = file->contents(most_bytes);  // fewer where it was cut off: its checksum tells
  if (!bytes) return without_bytes(FileState::unreadable, bytes.error().message);
  return {FileState::read, std::move(*bytes), {}, modified_ns(at)};
}

}  // namespace kiln
