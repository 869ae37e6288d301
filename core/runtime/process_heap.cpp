#include <kiln/runtime.hpp>

#include <malloc.h>

namespace kiln {

void prefer_roomy_heaps() noexcept {
#if defined(__GLIBC__)
  constexpr int mib = 1 << 20;
  // As much as fits into a thread's heap, of which glibc reserves 64 MiB: it gets this at its making.
  mallopt(M_TOP_PAD, 48 * mib);
  mallopt(M_MMAP_THRESHOLD, 32 * mib);
#endif
}

}  // namespace kiln
