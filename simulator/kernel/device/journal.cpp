#include "simulator/kernel/device/journal.hpp"

#include <fcntl.h>

namespace kiln::simulator::kernel {

Journal::Journal(const std::string& path) {
  if (!path.empty()) file_ = UniqueFd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
}

void Journal::write(std::string_view line) noexcept {
  try {
    std::string text = "kiln-sim[" + std::to_string(::getpid()) + "]: ";
    text.append(line).push_back('\n');
    // A line that cannot be written is nothing that the caller could do anything about.
    if (::write(file_ ? file_.get() : STDERR_FILENO, text.data(), text.size()) < 0) return;
  } catch (const std::exception&) {
    return;  // no memory for a line
  }
}

void Journal::fault(std::string text) {
  write(text);
  const std::scoped_lock lock(mutex_);
  last_fault_ = std::move(text);
}

std::string Journal::last_fault() const {
  const std::scoped_lock lock(mutex_);
  return last_fault_;
}

}  // namespace kiln::simulator::kernel
