// ELF notes: the notes of a segment, and the shared libraries of this process with their build-ids.
//
// Thread-safety: functions from any thread. Ownership: a note borrows from its segment; other results are values.
//
//   for (const kiln::LoadedLibrary& library : kiln::loaded_libraries()) {
//     std::puts((library.path + " " + library.build_id).c_str());
//   }
#pragma once

#include <kiln/status.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace [[gnu::visibility("default")]] kiln {

struct ElfNote {
  std::string_view owner;  // without its final NUL
  std::uint32_t type = 0;
  std::span<const std::byte> contents;
};

// Returns the notes of a segment or section of untrusted bytes. Owner and contents are padded to 8 bytes if `alignment` is
// 8, otherwise to 4. Ignores a rest that is shorter than the header of a note.
// corrupt: a note exceeds the segment.
Result<std::vector<ElfNote>> read_notes(std::span<const std::byte> segment, std::uint64_t alignment = 4);

// Returns the contents of the note NT_GNU_BUILD_ID. Empty: there is none, or the notes are damaged.
std::span<const std::byte> find_build_id(std::span<const std::byte> segment);

struct LoadedLibrary {
  std::string path;      // as the dynamic linker has it; empty: the program itself
  std::string build_id;  // in lower-case hexadecimal digits; empty: it has none
};

// In the order in which they were loaded.
std::vector<LoadedLibrary> loaded_libraries();

// The library in which this address of code or data is. nullopt: in none.
std::optional<LoadedLibrary> library_holding(const void* address);

}  // namespace kiln
