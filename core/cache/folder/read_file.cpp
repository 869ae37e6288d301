#include "cache/folder/read_file.hpp"

#include "cache/folder/open_folder.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <kiln/buffer.hpp>

#include <cerrno>
#include <system_error>

namespace kiln {
namespace {

FileContents without_bytes(FileState state, std::string why) { return {state, {}, std::move(why), 0}; }

std::string text_of(int error) { return std::generic_category().message(error); }

}  // namespace

std::int64_t modified_ns(const struct stat& at) noexcept {
  return std::int64_t{at.st_mtim.tv_sec} * 1'000'000'000 + at.st_mtim.tv_nsec;
}

FileContents read_file(int folder, const std::string& name, std::uint64_t most_bytes) {
  // O_NONBLOCK: a planted FIFO must not hang the reader.
  const UniqueFd file(openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file) {
    if (errno == ENOENT) return without_bytes(FileState::absent, {});
    if (errno == ELOOP) return without_bytes(FileState::misplaced, "is a symbolic link, expected a file");
    return without_bytes(FileState::unreadable, "cannot be opened: " + text_of(errno));
  }
  struct stat at {};
  if (fstat(file.get(), &at) != 0)
    return without_bytes(FileState::unreadable, "cannot be looked at: " + text_of(errno));
  if (!S_ISREG(at.st_mode)) return without_bytes(FileState::misplaced, "is not a regular file");
  if (!is_trusted_owner(at.st_uid)) {
    return without_bytes(FileState::foreign,
                         "belongs to user " + std::to_string(at.st_uid) + ", expected " + std::to_string(geteuid()));
  }
  const auto size = static_cast<std::uint64_t>(at.st_size);
  if (size > most_bytes) {
    FileContents large = without_bytes(
        FileState::too_large, "has " + std::to_string(size) + " bytes, expected at most " + std::to_string(most_bytes));
    large.modified_ns = modified_ns(at);
    return large;
  }
  FileContents contents{FileState::read, std::vector<std::byte>(static_cast<std::size_t>(size)), {}, modified_ns(at)};
  std::size_t done = 0;
  while (done < contents.bytes.size()) {
    const ssize_t got =
        pread(file.get(), contents.bytes.data() + done, contents.bytes.size() - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return without_bytes(FileState::unreadable, "cannot be read: " + text_of(errno));
    if (got == 0) break;  // became shorter meanwhile: what is left is told from its checksum
    done += static_cast<std::size_t>(got);
  }
  contents.bytes.resize(done);
  return contents;
}

}  // namespace kiln
