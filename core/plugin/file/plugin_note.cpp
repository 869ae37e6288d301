#include "plugin/file/plugin_note.hpp"

#include "plugin/file/elf_notes.hpp"

#include <algorithm>
#include <cstring>
#include <string>

namespace kiln {
namespace {

constexpr std::string_view note_owner = "Kiln";
constexpr std::uint32_t note_type = 1;

template <std::size_t size>
std::string text_of(const char (&field)[size]) {
  return {field, std::find(field, field + size, '\0')};
}

template <std::size_t size>
Status check_text(std::string_view what, const char (&field)[size]) {
  const char* end = std::find(field, field + size, '\0');
  if (end == field + size) return corrupt("its Kiln note has a " + std::string(what) + " without an end");
  for (const char* at = field; at != end; ++at) {
    if (*at < ' ' || *at > '~') return corrupt("its Kiln note has a " + std::string(what) + " that is not plain text");
  }
  return {};
}

Status difference(std::string_view field, const std::string& in_file, const std::string& in_memory) {
  if (in_file == in_memory) return {};
  return corrupt("its note and its object differ in " + std::string(field) + ": '" + in_file + "' in the file, '" +
                 in_memory + "' in memory");
}

}  // namespace

Result<PluginNote> parse_plugin_note(std::span<const std::byte> file) {
  auto notes = read_elf_notes(file);
  if (!notes) return std::move(notes).error();
  const auto ours = [](const ElfNote& note) { return note.owner == note_owner && note.type == note_type; };
  const auto count = std::ranges::count_if(*notes, ours);
  if (count == 0) return corrupt("not a Kiln plugin: it has no note of Kiln");
  if (count > 1) return corrupt("it has " + std::to_string(count) + " notes of Kiln, expected one");
  const std::span<const std::byte> contents = std::ranges::find_if(*notes, ours)->contents;

  PluginNote note{};
  if (contents.size() >= sizeof note.abi) {
    std::memcpy(&note.abi, contents.data(), sizeof note.abi);
    if (note.abi != plugin_abi) return note;
  }
  if (contents.size() != sizeof note) {
    return corrupt("its Kiln note has " + std::to_string(contents.size()) + " bytes, expected " +
                   std::to_string(sizeof note));
  }
  std::memcpy(&note, contents.data(), sizeof note);
  for (Status status : {check_text("fingerprint", note.fingerprint), check_text("name", note.name),
                        check_text("version", note.version)}) {
    if (!status.ok()) return status;
  }
  return note;
}

Status check_note(const PluginNote& note, std::string_view file_name) {
  if (note.abi != plugin_abi) {
    const bool older = note.abi < plugin_abi;
    return unsupported("built for plugin ABI " + std::to_string(note.abi) + ", " + (older ? "older" : "newer") +
                       " than this Kiln's " + std::to_string(plugin_abi) +
                       (older ? ": rebuild the plugin" : ": it needs a newer Kiln"));
  }
  if (text_of(note.fingerprint) != build_fingerprint) {
    return unsupported("build fingerprint '" + text_of(note.fingerprint) + "', this Kiln's is '" + build_fingerprint +
                       "'");
  }
  if (text_of(note.name) != file_name) {
    return invalid_argument("it calls itself '" + text_of(note.name) + "', its file is named '" +
                            std::string(file_name) + "'");
  }
  return {};
}

Status compare_notes(const PluginNote& in_file, const PluginNote& in_memory) {
  for (Status status : {difference("abi", std::to_string(in_file.abi), std::to_string(in_memory.abi)),
                        difference("fingerprint", text_of(in_file.fingerprint), text_of(in_memory.fingerprint)),
                        difference("name", text_of(in_file.name), text_of(in_memory.name)),
                        difference("version", text_of(in_file.version), text_of(in_memory.version))}) {
    if (!status.ok()) return status;
  }
  return {};
}

}  // namespace kiln
