// Words of memory that the host's own threads read and write while a device works on it: moved whole where aligned.
//
// Thread-safety: any thread. Ownership: borrows.
#pragma once

#include <cstddef>
#include <span>

namespace kiln::simulator {

// Both sides of one size. Aligned (on the host's side) runs of 4 and 8 bytes are one access each.
void read_host(const std::byte* host, std::span<std::byte> out) noexcept;
void write_host(std::byte* host, std::span<const std::byte> bytes) noexcept;

// Writes to `host` the bytes whose mark is not 0, and no others, also where the host writes beside them; answers how
// many. Marks are 0 or 1. Sizes are multiples of 8, `host` is aligned to 8.
std::size_t write_marked(std::byte* host, std::span<const std::byte> bytes, std::span<const std::byte> marks) noexcept;

}  // namespace kiln::simulator
