// Locks on single bytes of a file, of the kind that belongs to the open file (F_OFD_SETLK): the kernel lets them go
// when the last descriptor of that open file is closed, so also when its process dies, however it dies.
//
// Thread-safety: calls of the operating system. One open file never hinders itself: its threads agree by other means.
// Ownership: none; the byte need not exist.
#pragma once

#include <cstdint>

namespace kiln {

enum class LockAnswer : std::uint8_t {
  invalid = 0,
  taken,
  busy,    // another open file has it
  failed,  // the filesystem does not lock
};

LockAnswer try_lock_byte(int file, std::uint64_t at) noexcept;
void unlock_byte(int file, std::uint64_t at) noexcept;

}  // namespace kiln
