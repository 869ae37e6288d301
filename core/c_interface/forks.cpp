#include "c_interface/forks.hpp"

#include <pthread.h>

#include <atomic>
#include <string>

namespace kiln::c_interface {
namespace {

std::atomic<std::uint32_t>& forks() noexcept {
  static std::atomic<std::uint32_t> count{0};
  static const int counted = pthread_atfork(nullptr, nullptr, [] { count.fetch_add(1, std::memory_order_relaxed); });
  static_cast<void>(counted);
  return count;
}

}  // namespace

OpeningProcess::OpeningProcess() noexcept : forks_(forks()) {}

bool OpeningProcess::is_this() const noexcept { return forks_ == forks().load(std::memory_order_relaxed); }

Status OpeningProcess::check(const char* function, const char* handle) const {
  if (is_this()) return {};
  return unavailable(std::string(function) + ": the " + handle +
                     " was opened before fork(), and its threads exist in the parent only. Open one in the child");
}

}  // namespace kiln::c_interface
