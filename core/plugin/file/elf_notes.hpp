// Reads the notes of a shared library from its bytes, trusting none of them: what is checked before dlopen sees a file.
//
// Thread-safety: a pure function. Ownership: the notes borrow from the bytes that were given.
#pragma once

#include <kiln/status.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace kiln {

struct ElfNote {
  std::string_view owner;  // without its final NUL
  std::uint32_t type = 0;
  std::span<const std::byte> contents;
};

// corrupt: not an ELF file, truncated or inconsistent. unsupported: an ELF file of another class, byte order, machine
// or type than a shared library of this process, naming both. The messages do not name the file: the caller does.
Result<std::vector<ElfNote>> read_elf_notes(std::span<const std::byte> file);

}  // namespace kiln
