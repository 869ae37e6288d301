// The Kiln note of a plugin: read from the file's bytes, checked against this host, compared with the object in memory.
//
// Thread-safety: pure functions. The messages do not name the file: the caller does.
#pragma once

#include <kiln/plugin.hpp>
#include <kiln/status.hpp>

#include <cstddef>
#include <span>
#include <string_view>

namespace kiln {

// unsupported or corrupt as read_elf_notes() says; corrupt where there is no Kiln note, more than one, or a damaged
// one. Of a note of another ABI only `abi` is set: its layout may differ, and check_note() turns it down by the number.
Result<PluginNote> parse_plugin_note(std::span<const std::byte> file);

// ABI, then build fingerprint, then name, which shall be that of the file. The message holds both sides.
Status check_note(const PluginNote& note, std::string_view file_name);

// corrupt, naming the first field in which the object differs from the file's note.
Status compare_notes(const PluginNote& in_file, const PluginNote& in_memory);

}  // namespace kiln
