#include "pm4/kernel_time.hpp"

#include <dlfcn.h>

#include <cstdarg>

#include "kiln/clock.hpp"

namespace {

thread_local std::uint64_t total_ns = 0, calls = 0;

}  // namespace

namespace kiln::bench {

std::uint64_t in_kernel_ns() noexcept { return total_ns; }
std::uint64_t kernel_calls() noexcept { return calls; }

}  // namespace kiln::bench

// In front of the simulator's, which is preloaded: an executable's own comes first.
extern "C" int ioctl(int fd, unsigned long request, ...) noexcept {
  using Ioctl = int (*)(int, unsigned long, ...);
  static const Ioctl next = reinterpret_cast<Ioctl>(dlsym(RTLD_NEXT, "ioctl"));
  std::va_list arguments;
  va_start(arguments, request);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  const std::uint64_t begin = kiln::now_ns();
  const int result = next(fd, request, argument);
  total_ns += kiln::now_ns() - begin;
  ++calls;
  return result;
}
