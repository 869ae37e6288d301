// How often memory was asked for: allocation_count.cpp replaces operator new for the whole process, of a test binary
// that names it among its sources.
//
// Thread-safety: any thread. Ownership: none.
#pragma once

#include <cstdint>

namespace kiln::support {

// false: a sanitizer has an operator new of its own, and nothing is counted.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool counts_allocations = false;
#else
inline constexpr bool counts_allocations = true;
#endif

// Calls of operator new by all threads so far.
std::uint64_t allocation_count() noexcept;

}  // namespace kiln::support
