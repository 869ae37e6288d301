#include "data/regular_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

namespace kiln::data {
namespace {

constexpr std::size_t most_per_call = std::size_t{1} << 30;  // Linux transfers at most 2^31 - 4096 bytes a call

std::string file(const std::string& name) { return "file " + name + ": "; }

}  // namespace

Result<RegularFile> RegularFile::open(const std::filesystem::path& path) {
  // O_NONBLOCK: opening a FIFO without a writer would wait for ever.
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd) {
    const int error = errno;
    std::string message = file(path.string()) + "cannot open: " + std::generic_category().message(error);
    return error == ENOENT || error == ENOTDIR ? not_found(std::move(message)) : io_error(std::move(message));
  }
  struct stat found {};
  if (::fstat(fd.get(), &found) != 0) {
    return io_error(file(path.string()) + "cannot stat: " + std::generic_category().message(errno));
  }
  if (!S_ISREG(found.st_mode)) {
    const char* what = S_ISDIR(found.st_mode) ? "a folder" : "a device, FIFO or socket";
    return invalid_argument(file(path.string()) + "found " + what + ", expected a regular file");
  }
  return RegularFile(path.string(), std::move(fd), static_cast<std::uint64_t>(found.st_size));
}

RegularFile::RegularFile(std::string name, UniqueFd fd, std::uint64_t bytes) noexcept
    : name_(std::move(name)), fd_(std::move(fd)), bytes_(bytes) {}

Status RegularFile::read(std::uint64_t offset, std::span<std::byte> to) const {
  while (!to.empty()) {
    const ssize_t got = ::pread(fd_.get(), to.data(), std::min(to.size(), most_per_call), static_cast<off_t>(offset));
    if (got < 0) {
      if (errno == EINTR) continue;
      return io_error(file(name_) + "cannot read: " + std::generic_category().message(errno));
    }
    if (got == 0) {
      return corrupt(file(name_) + "ends at byte " + std::to_string(offset) + ", expected " +
                     std::to_string(to.size()) + " more");
    }
    offset += static_cast<std::uint64_t>(got);
    to = to.subspan(static_cast<std::size_t>(got));
  }
  return {};
}

}  // namespace kiln::data
