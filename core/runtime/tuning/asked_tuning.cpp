#include "runtime/tuning/asked_tuning.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <chrono>
#include <thread>

namespace kiln {
namespace {

constexpr const char* lock_name = "tuning.lock";
constexpr std::chrono::milliseconds look{50};

}  // namespace

Result<UniqueFd> take_asked_turn(const std::filesystem::path& folder, const std::atomic<bool>* stop, const Log& log) {
  if (folder.empty()) return UniqueFd();
  std::error_code unwritable;  // opening says it again
  std::filesystem::create_directories(folder, unwritable);
  UniqueFd file(open((folder / lock_name).c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return UniqueFd();
  for (bool said = false; flock(file.get(), LOCK_EX | LOCK_NB) != 0; std::this_thread::sleep_for(look)) {
    if (errno != EWOULDBLOCK && errno != EINTR) return UniqueFd();  // a filesystem without locks
    if (stop != nullptr && stop->load()) return cancelled("tuning was ended while another process tuned");
    if (!said) log.write(LogLevel::warning, "tuning", "waits: another process tunes for " + folder.string());
    said = true;
  }
  return file;
}

bool is_asked_turn_taken(const std::filesystem::path& folder) noexcept {
  const UniqueFd file(open((folder / lock_name).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  return file && flock(file.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

}  // namespace kiln
