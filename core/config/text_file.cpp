#include "config/text_file.hpp"

#include <kiln/buffer.hpp>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

namespace kiln::config {
namespace {

Status refused(int error) {
  if (error == ENOENT || error == ENOTDIR) return not_found("no such file");
  return io_error("cannot be read: " + std::generic_category().message(error));
}

constexpr int most_wait_s = 60;

}  // namespace

Result<std::string> read_text_file(const std::filesystem::path& path) {
  // Without O_NONBLOCK, opening a FIFO waits until somebody writes to it.
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!file) return refused(errno);
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return refused(errno);
  if (S_ISDIR(info.st_mode)) return invalid_argument("found a folder, expected a file");

  std::string text;
  std::array<char, 1u << 14u> block;
  for (;;) {
    const ssize_t got = ::read(file.get(), block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) {
      pollfd waited{file.get(), POLLIN, 0};
      const int ready = ::poll(&waited, 1, most_wait_s * 1000);
      if (ready > 0 || (ready < 0 && errno == EINTR)) continue;
      return invalid_argument("found a pipe that nothing was written to for " + std::to_string(most_wait_s) +
                              " s, expected a file");
    }
    if (got < 0) return refused(errno);
    if (got == 0 && text.empty() && S_ISFIFO(info.st_mode)) {
      return invalid_argument("found a pipe that nothing is written to, expected a file");
    }
    if (got == 0) return text;
    text.append(block.data(), static_cast<std::size_t>(got));
    if (text.size() > most_text_bytes) {
      return invalid_argument("found more than " + std::to_string(most_text_bytes) + " bytes, expected at most those");
    }
  }
}

}  // namespace kiln::config
