#include "runtime/tuning/asked_tuning.hpp"

#include "cache/folder/open_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

namespace kiln {
namespace {

constexpr const char* lock_name = "tuning.lock";
constexpr std::chrono::milliseconds look{50};

}  // namespace

Result<UniqueFd> take_asked_turn(const std::filesystem::path& folder, const std::atomic<bool>* stop, const Log& log) {
  if (folder.empty()) return UniqueFd();
  const auto opened = open_folder(folder, Create::yes);
  if (!opened) return UniqueFd();  // whoever keeps something there says why
  auto shared = open_shared_file(opened->get(), lock_name, (folder / lock_name).string(), Create::yes);
  if (!shared || !*shared) return UniqueFd();
  UniqueFd file = std::move(*shared);
  for (bool said = false; flock(file.get(), LOCK_EX | LOCK_NB) != 0; std::this_thread::sleep_for(look)) {
    if (errno != EWOULDBLOCK && errno != EINTR) return UniqueFd();  // a filesystem without locks
    if (stop != nullptr && stop->load()) return cancelled("tuning was ended while another process tuned");
    if (!said) log.write(LogLevel::warning, "tuning", "waits: another process tunes for " + folder.string());
    said = true;
  }
  return file;
}

bool is_asked_turn_taken(const std::filesystem::path& folder) noexcept {
  const UniqueFd file(open((folder / lock_name).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  return file && flock(file.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

}  // namespace kiln
