// Time that the calling thread has spent in the kernel's interface: this program's ioctl() stands in front of all
// others. Thread-safety: any thread, each its own time. Ownership: none.
#pragma once

#include <cstdint>

namespace kiln::bench {

std::uint64_t in_kernel_ns() noexcept;
// And how often it called.
std::uint64_t kernel_calls() noexcept;

}  // namespace kiln::bench
