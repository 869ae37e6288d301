// Any bytes may lie where a plugin's file is looked for: reading its note must answer or refuse, within the bytes.
#include "plugin/plugin_note.hpp"

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto note = kiln::parse_plugin_note(std::as_bytes(std::span(data, size)));
  if (!note) {
    if (note.error().message.empty()) std::abort();
    return 0;
  }
  if (kiln::check_note(*note, note->name).ok() && !kiln::compare_notes(*note, *note).ok()) std::abort();
  return 0;
}
