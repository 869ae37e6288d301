#include <kiln/host_processor.hpp>

#include <sched.h>

#include <cstddef>

namespace kiln {
namespace {

// Above every clock that is sold, boosts included. What the kernel tells of clocks leaves boosts out on some machines,
// and a roof that is too low would make errors of good runs.
constexpr double clock_ghz = 6.5;
constexpr double units = 2;  // that multiply, in each core

// Floating-point operations of one unit in a cycle.
double operations() noexcept {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return 16 * 2;
  if (__builtin_cpu_supports("fma")) return 8 * 2;
  // Without fused operations one unit multiplies while the other adds.
  if (__builtin_cpu_supports("avx")) return 8;
  return 4;
#else
  return 0;
#endif
}

}  // namespace

int host_cores() noexcept {
  // The mask of a machine with more processors than cpu_set_t holds does not fit: the sets grow until it does.
  for (std::size_t processors = CPU_SETSIZE; processors <= (std::size_t{1} << 20); processors *= 2) {
    cpu_set_t* set = CPU_ALLOC(processors);
    if (set == nullptr) return 1;
    const std::size_t bytes = CPU_ALLOC_SIZE(processors);
    const int count = sched_getaffinity(0, bytes, set) == 0 ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (count > 0) return count;
  }
  return 1;
}

double host_roof_gflops() noexcept { return host_cores() * units * operations() * clock_ghz; }

}  // namespace kiln
