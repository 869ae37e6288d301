#include <kiln/runtime.hpp>

#include <malloc.h>

namespace kiln {

void prefer_one_heap() noexcept {
#if defined(__GLIBC__)
  constexpr int step_bytes = 16 << 20;
  mallopt(M_ARENA_MAX, 1);
  mallopt(M_TOP_PAD, step_bytes);
  mallopt(M_MMAP_THRESHOLD, 2 * step_bytes);
#endif
}

}  // namespace kiln
