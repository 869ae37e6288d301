// What an ELF file's headers say of it: its build-id and the libraries it needs. Nothing of its code is read.
//
// Thread-safety: free function. Ownership: the file is opened and closed inside the call.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace kiln {

struct ElfFacts {
  std::string build_id;             // raw bytes of .note.gnu.build-id; empty: it has none
  std::vector<std::string> needed;  // DT_NEEDED, in the file's order
};

// nullopt: it cannot be read, or is no 64-bit little-endian ELF file with sane headers.
std::optional<ElfFacts> read_elf_facts(const std::filesystem::path& file);

}  // namespace kiln
