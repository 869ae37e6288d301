// Plugin note: reads the Kiln note from a plugin's file and compares it with this host and with the object in memory.
//
// Thread-safety: pure functions. Messages do not name the file; the caller adds it.
#pragma once

#include <kiln/elf_notes.hpp>
#include <kiln/plugin.hpp>
#include <kiln/status.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace kiln {

// unsupported, corrupt: as read_elf_notes(). corrupt: no Kiln note, several, or a damaged one. Of a note with another ABI
// only `abi` is set, because its layout may differ; check_note() rejects it by the number.
Result<PluginNote> parse_plugin_note(std::span<const std::byte> file);

// Checks ABI, build fingerprint, and name, which must be that of the file. The error has both values.
Status check_note(const PluginNote& note, std::string_view file_name);

// corrupt: names the first field in which the object differs from the file's note.
Status compare_notes(const PluginNote& in_file, const PluginNote& in_memory);

// Reads the ELF notes of a shared library from untrusted bytes, before dlopen.
//
// Thread-safety: a pure function. Ownership: the notes borrow from the bytes.

// corrupt: not an ELF file, truncated or inconsistent. unsupported: another class, byte order, machine or type than a
// shared library of this process; the error names both. Messages do not name the file; the caller adds it.
Result<std::vector<ElfNote>> read_elf_notes(std::span<const std::byte> file);

}  // namespace kiln
