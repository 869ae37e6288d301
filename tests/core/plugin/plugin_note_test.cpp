// The note's reader on bytes: the good plugin's, and what they become when damaged.
#include <catch2/catch.hpp>

#include <elf.h>

#include <cstring>
#include <random>

#include "core/plugin/plugin_folder.hpp"
#include "plugin/plugin_note.hpp"

using namespace kiln;
using namespace kiln::test;
using Catch::Contains;

namespace {

std::string good() { return read_file(std::filesystem::path(KILN_BINARY_DIR) / "tests/fixtures/good.so"); }

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// A minimal shared library: header, one note segment, no section.
std::string library_of(const std::string& note_segment) {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_machine = EM_X86_64;
  header.e_type = ET_DYN;
  header.e_phoff = sizeof header;
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 1;
  Elf64_Phdr segment{};
  segment.p_type = PT_NOTE;
  segment.p_offset = sizeof header + sizeof segment;
  segment.p_filesz = note_segment.size();
  segment.p_align = 4;
  std::string file(sizeof header + sizeof segment, '\0');
  std::memcpy(file.data(), &header, sizeof header);
  std::memcpy(file.data() + sizeof header, &segment, sizeof segment);
  return file + note_segment;
}

std::string note_of(const PluginElfNote& note) { return {reinterpret_cast<const char*>(&note), sizeof note}; }

PluginElfNote plain_note() {
  PluginElfNote note{5, sizeof(PluginNote), 1, "Kiln", {plugin_abi, KILN_BUILD_FINGERPRINT, "plain", "1"}};
  return note;
}

}  // namespace

TEST_CASE("note: read from a plugin's file") {
  const std::string file = good();
  const auto note = parse_plugin_note(bytes_of(file));
  REQUIRE(note);
  CHECK(note->abi == plugin_abi);
  CHECK(std::string(note->name) == "good");
  CHECK(std::string(note->version) == "1.0");
  CHECK(std::string(note->fingerprint) == build_fingerprint);
  CHECK(check_note(*note, "good").ok());
}

TEST_CASE("note: other owners' notes are passed by") {
  const std::string other("\x04\0\0\0\x02\0\0\0\x07\0\0\0GNU\0\x11\x22\0\0", 20);
  const std::string file = library_of(other + note_of(plain_note()));
  const auto notes = read_elf_notes(bytes_of(file));
  REQUIRE(notes);
  REQUIRE(notes->size() == 2);
  CHECK((*notes)[0].owner == "GNU");
  CHECK((*notes)[0].type == 7);
  CHECK((*notes)[0].contents.size() == 2);
  CHECK(parse_plugin_note(bytes_of(file)));
}

TEST_CASE("note: two of Kiln are refused") {
  const std::string file = library_of(note_of(plain_note()) + note_of(plain_note()));
  CHECK_THAT(parse_plugin_note(bytes_of(file)).error().message, Contains("found 2 Kiln notes, expected 1"));
}

TEST_CASE("note: a text without an end, or with an odd letter, is refused") {
  PluginElfNote note = plain_note();
  SECTION("name") {
    std::memset(note.note.name, 'x', sizeof note.note.name);
    CHECK_THAT(parse_plugin_note(bytes_of(library_of(note_of(note)))).error().message,
               Contains("a name without a NUL at the end"));
  }
  SECTION("version") {
    note.note.version[0] = '\x1b';
    CHECK_THAT(parse_plugin_note(bytes_of(library_of(note_of(note)))).error().message,
               Contains("a version that is not printable ASCII"));
  }
}

TEST_CASE("note: one of another ABI may have another size") {
  PluginElfNote note = plain_note();
  note.note.abi = 99;
  note.note_bytes = 8;
  const auto read = parse_plugin_note(bytes_of(library_of(note_of(note).substr(0, 28))));
  REQUIRE(read);
  CHECK_THAT(check_note(*read, "plain").message,
             Contains("built for plugin ABI 99, expected ") && Contains(". Install a newer Kiln"));
  note.note.abi = plugin_abi;
  CHECK_THAT(parse_plugin_note(bytes_of(library_of(note_of(note).substr(0, 28)))).error().message,
             Contains("Kiln note has 8 bytes, expected 224"));
}

TEST_CASE("note: a note that leaves its segment is refused") {
  PluginElfNote note = plain_note();
  note.note_bytes = 0xffffffff;
  CHECK_THAT(parse_plugin_note(bytes_of(library_of(note_of(note)))).error().message,
             Contains("exceeds the segment of"));
  note = plain_note();
  note.owner_bytes = 0xfffffffe;
  CHECK_THAT(parse_plugin_note(bytes_of(library_of(note_of(note)))).error().message,
             Contains("exceeds the segment of"));
}

TEST_CASE("note: an executable is no plugin") {
  std::string file = library_of(note_of(plain_note()));
  file[offsetof(Elf64_Ehdr, e_type)] = ET_EXEC;
  CHECK_THAT(parse_plugin_note(bytes_of(file)).error().message, Contains("an executable, expected a shared library"));
}

TEST_CASE("note: the error for a big-endian file names both byte orders") {
  std::string file = library_of(note_of(plain_note()));
  file[EI_DATA] = ELFDATA2MSB;
  CHECK_THAT(parse_plugin_note(bytes_of(file)).error().message,
             Contains("built for big-endian, expected little-endian"));
}

TEST_CASE("note: every truncation of a plugin is seen") {
  const std::string file = good();
  for (std::size_t size = 0; size < file.size(); size += size < 4096 ? 1 : 61) {
    const std::string part = file.substr(0, size);
    const auto note = parse_plugin_note(bytes_of(part));
    if (note) FAIL("a file of " << size << " of " << file.size() << " bytes was taken for whole");
    CHECK(note.error().code == StatusCode::corrupt);
  }
}

TEST_CASE("note: a damaged note never makes the reader read outside the file") {
  // The copy is exactly as long as the file, so that the address sanitizer sees a step too far.
  const std::string file = good();
  std::mt19937 random(1);
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::byte> damaged(file.size());
    std::memcpy(damaged.data(), file.data(), file.size());
    const bool in_headers = round % 2 == 0;
    for (int i = 0; i < 4; ++i) {
      const std::size_t at = random() % (in_headers ? 0x400 : damaged.size());
      damaged[at] = static_cast<std::byte>(random());
    }
    const auto note = parse_plugin_note(damaged);
    if (!note) CHECK_FALSE(note.error().message.empty());
  }
}

TEST_CASE("note: the kept corpus has the answers that its names say") {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(KILN_SOURCE_DIR "/tests/corpus/plugin_note")) {
    const std::string name = entry.path().filename().string();
    INFO(name);
    const std::string file = read_file(entry.path());
    const auto note = parse_plugin_note(bytes_of(file));
    CHECK(note.has_value() == name.starts_with("readable-"));
    ++files;
  }
  CHECK(files >= 10);
}

TEST_CASE("note: the first field that differs is named") {
  const PluginNote note = plain_note().note;
  CHECK(compare_notes(note, note).ok());
  PluginNote other = note;
  other.name[0] = 'P';
  CHECK_THAT(compare_notes(note, other).message, Contains("differ in name: 'plain' in the file, 'Plain' in memory"));
  other = note;
  other.abi = plugin_abi + 1;
  CHECK_THAT(compare_notes(note, other).message,
             Contains("differ in abi: '" + std::to_string(plugin_abi) + "' in the file, '" +
                      std::to_string(plugin_abi + 1) + "' in memory"));
  other = note;
  other.fingerprint[0] = 'x';
  CHECK_THAT(compare_notes(note, other).message, Contains("differ in fingerprint"));
}
