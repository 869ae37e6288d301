#include <fcntl.h>
#include <openssl/sha.h>
#include <unistd.h>

#include <kiln/regular_file.hpp>

#include <algorithm>
#include <cerrno>
#include <new>
#include <system_error>
#include <utility>

namespace kiln {
namespace {

constexpr std::size_t most_per_call = std::size_t{1} << 30;  // Linux transfers at most 2^31 - 4096 bytes a call

std::string file(const std::string& name) { return "file " + name + ": "; }

const char* kind_name(mode_t mode) noexcept {
  if (S_ISDIR(mode)) return "a folder";
  return S_ISFIFO(mode) ? "a FIFO" : "a device";
}

Status not_opened(const std::string& name, int error, SymbolicLink link) {
  if (error == ELOOP && link == SymbolicLink::refuse) {
    return invalid_argument(file(name) + "not a regular file (expected a file, found a symbolic link)");
  }
  if (error == ENXIO)
    return invalid_argument(file(name) + "not a regular file (expected a file, found a socket or a device)");
  std::string message = file(name) + "cannot open: " + std::generic_category().message(error);
  return error == ENOENT || error == ENOTDIR ? not_found(std::move(message)) : io_error(std::move(message));
}

}  // namespace

Result<RegularFile> RegularFile::open(const std::filesystem::path& path, SymbolicLink link) {
  return open_at(AT_FDCWD, path.string(), link);
}

Result<RegularFile> RegularFile::open_at(int folder, const std::string& path, SymbolicLink link) {
  // O_NONBLOCK: opening a FIFO without a writer would wait for ever.
  const int no_link = link == SymbolicLink::refuse ? O_NOFOLLOW : 0;
  UniqueFd fd(::openat(folder, path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | no_link));
  if (!fd) return not_opened(path, errno, link);
  struct stat found {};
  if (::fstat(fd.get(), &found) != 0) {
    return io_error(file(path) + "cannot stat: " + std::generic_category().message(errno));
  }
  if (!S_ISREG(found.st_mode)) {
    return invalid_argument(file(path) + "not a regular file (expected a file, found " + kind_name(found.st_mode) +
                            ")");
  }
  return RegularFile(path, std::move(fd), found);
}

RegularFile::RegularFile(std::string name, UniqueFd fd, const struct stat& facts) noexcept
    : name_(std::move(name)), fd_(std::move(fd)), facts_(facts) {}

Result<std::size_t> RegularFile::read_some(std::uint64_t offset, std::span<std::byte> to) const {
  std::size_t done = 0;
  while (done < to.size()) {
    const ssize_t got = ::pread(fd_.get(), to.data() + done, std::min(to.size() - done, most_per_call),
                                static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return io_error(file(name_) + "cannot read: " + std::generic_category().message(errno));
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

Status RegularFile::read(std::uint64_t offset, std::span<std::byte> to) const {
  const Result<std::size_t> got = read_some(offset, to);
  if (!got) return got.error();
  if (*got == to.size()) return {};
  return corrupt(file(name_) + "has " + std::to_string(offset + *got) + " bytes, expected at least " +
                 std::to_string(offset + to.size()));
}

Status RegularFile::check_size(std::uint64_t most_bytes) const {
  if (bytes() <= most_bytes) return {};
  return invalid_argument(file(name_) + "has " + std::to_string(bytes()) + " bytes, expected at most " +
                          std::to_string(most_bytes));
}

Result<std::vector<std::byte>> RegularFile::contents(std::uint64_t most_bytes) const try {
  if (Status status = check_size(most_bytes); !status.ok()) return status;
  std::vector<std::byte> all(static_cast<std::size_t>(bytes()));
  const Result<std::size_t> got = read_some(0, all);
  if (!got) return got.error();
  all.resize(*got);
  return all;
} catch (const std::bad_alloc&) {
  return unavailable(file(name_) + "not enough memory for " + std::to_string(bytes()) + " bytes");
}

Result<std::string> RegularFile::text(std::uint64_t most_bytes) const try {
  if (Status status = check_size(most_bytes); !status.ok()) return status;
  std::string all(static_cast<std::size_t>(bytes()), '\0');
  const Result<std::size_t> got = read_some(0, std::as_writable_bytes(std::span(all)));
  if (!got) return got.error();
  all.resize(*got);
  return all;
} catch (const std::bad_alloc&) {
  return unavailable(file(name_) + "not enough memory for " + std::to_string(bytes()) + " bytes");
}

Result<Digest> RegularFile::digest_of_first(std::uint64_t count) const {
  std::vector<std::byte> piece(static_cast<std::size_t>(std::min<std::uint64_t>(count, 1u << 20)));
  SHA256_CTX state;
  SHA256_Init(&state);
  for (std::uint64_t at = 0; at < count; at += piece.size()) {
    piece.resize(static_cast<std::size_t>(std::min<std::uint64_t>(count - at, piece.size())));
    if (Status status = read(at, piece); !status.ok()) return status;
    SHA256_Update(&state, piece.data(), piece.size());
  }
  Digest digest;
  SHA256_Final(digest.bytes.data(), &state);
  return digest;
}

Result<std::string> read_whole_file(const std::filesystem::path& path, std::uint64_t most_bytes, SymbolicLink link) {
  const Result<RegularFile> opened = RegularFile::open(path, link);
  if (!opened) return opened.error();
  return opened->text(most_bytes);
}

}  // namespace kiln
