#include "selector/store/model_lock.hpp"

#include "selector/store/model_store.hpp"

#include <kiln/clock.hpp>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <system_error>
#include <thread>

namespace kiln::selector {
namespace {

constexpr std::chrono::seconds patience{3};
constexpr std::chrono::milliseconds pause{2};

}  // namespace

Result<UniqueFd> lock_model(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / model_lock;
  const auto open_it = [&] {
    return UniqueFd(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  };
  UniqueFd fd = open_it();
  if (!fd && errno == ENOENT) {
    std::error_code ignored;  // the second attempt says what is wrong
    std::filesystem::create_directories(folder.parent_path(), ignored);
    ::mkdir(folder.c_str(), 0700);
    fd = open_it();
  }
  if (!fd) return io_error("file " + file.string() + ": " + std::generic_category().message(errno));
  const Deadline deadline = Deadline::after(patience);
  while (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) {
      return io_error("file " + file.string() + ": " + std::generic_category().message(errno));
    }
    if (deadline.passed()) return unavailable("file " + file.string() + ": another process holds it");
    std::this_thread::sleep_for(pause);
  }
  return fd;
}

}  // namespace kiln::selector
