#include "c_interface/forks.hpp"

#include <pthread.h>

#include <string>

namespace kiln::c_interface {

constinit std::atomic<std::uint32_t> OpeningProcess::forks{0};

OpeningProcess::OpeningProcess() noexcept {
  static const int counted = pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
  static_cast<void>(counted);
}

Status OpeningProcess::check(const char* function, const char* handle) const {
  if (is_this()) return {};
  return unavailable(std::string(function) + ": the " + handle +
                     " was opened before fork(), and its threads exist in the parent only. Open one in the child");
}

}  // namespace kiln::c_interface
