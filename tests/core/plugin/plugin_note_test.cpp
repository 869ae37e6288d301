// The note's reader on bytes: the good plugin's, and what they become when damaged.
#include <catch2/catch.hpp>

#include <elf.h>

#include <cstring>
#include <functional>
#include <random>
#include <utility>

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

TEST_CASE("note: the error for a file of another machine, class, byte order or type names both sides") {
  const std::string whole = library_of(note_of(plain_note()));
  const auto told = [&](std::size_t at, std::uint16_t value, std::size_t bytes) {
    std::string file = whole;
    std::memcpy(file.data() + at, &value, bytes);
    const auto note = parse_plugin_note(bytes_of(file));
    REQUIRE_FALSE(note);
    CHECK(note.error().code == StatusCode::unsupported);
    return note.error().message;
  };
  const std::pair<std::uint16_t, std::string> machines[] = {
      {EM_386, "x86"},         {EM_ARM, "ARM"},    {EM_AARCH64, "AArch64"},     {EM_RISCV, "RISC-V"},
      {EM_PPC64, "PowerPC64"}, {EM_S390, "S/390"}, {EM_LOONGARCH, "LoongArch"}, {9999, "machine 9999"}};
  for (const auto& [machine, name] : machines) {
    CHECK_THAT(told(offsetof(Elf64_Ehdr, e_machine), machine, 2), Contains("built for " + name + ", expected x86-64"));
  }
  const std::pair<std::uint16_t, std::string> types[] = {
      {ET_REL, "an object file"}, {ET_EXEC, "an executable"}, {ET_CORE, "a core dump"}, {77, "ELF type 77"}};
  for (const auto& [type, name] : types) {
    CHECK_THAT(told(offsetof(Elf64_Ehdr, e_type), type, 2), Contains(name + ", expected a shared library"));
  }
  CHECK_THAT(told(EI_CLASS, ELFCLASS32, 1), Contains("built for 32-bit, expected 64-bit"));
  CHECK_THAT(told(EI_CLASS, 7, 1), Contains("built for ELF class 7, expected 64-bit"));
  CHECK_THAT(told(EI_DATA, 7, 1), Contains("built for byte order 7, expected little-endian"));
}

namespace {

// The error about a library whose header and segment were changed; empty: its note is read.
std::string told_of_header(const std::function<void(Elf64_Ehdr&, Elf64_Phdr&)>& change,
                           const std::string& behind = "") {
  std::string file = library_of(note_of(plain_note())) + behind;
  Elf64_Ehdr header;
  Elf64_Phdr segment;
  std::memcpy(&header, file.data(), sizeof header);
  std::memcpy(&segment, file.data() + sizeof header, sizeof segment);
  change(header, segment);
  std::memcpy(file.data(), &header, sizeof header);
  std::memcpy(file.data() + sizeof header, &segment, sizeof segment);
  const auto note = parse_plugin_note(bytes_of(file));
  if (!note) CHECK(note.error().code == StatusCode::corrupt);
  return note ? std::string() : note.error().message;
}

}  // namespace

TEST_CASE("note: a table or segment that leaves the file is refused with its place") {
  const std::size_t bytes = library_of(note_of(plain_note())).size();
  const std::string has = "truncated: file has " + std::to_string(bytes) + " bytes, expected ";
  CHECK(told_of_header([](auto&, auto&) {}).empty());
  CHECK_THAT(told_of_header([](auto& header, auto&) { header.e_phnum = 0; }),
             Contains("inconsistent: 0 program headers of 56 bytes, expected 1 to 128 of 56 bytes"));
  CHECK_THAT(told_of_header([](auto& header, auto&) { header.e_phnum = 129; }), Contains("129 program headers"));
  CHECK_THAT(told_of_header([](auto& header, auto&) { header.e_phnum = 128; }),
             Contains(has + "program header table of 7168 bytes at offset 64"));
  CHECK_THAT(told_of_header([](auto& header, auto&) { header.e_phentsize = 55; }),
             Contains("1 program headers of 55 bytes"));
  CHECK_THAT(told_of_header([&](auto& header, auto&) { header.e_phoff = bytes - 55; }),
             Contains(has + "program header table of 56 bytes at offset " + std::to_string(bytes - 55)));
  CHECK_THAT(told_of_header([](auto& header, auto&) { header.e_phoff = ~std::uint64_t{0}; }),
             Contains("program header table of 56 bytes at offset 18446744073709551615"));
  CHECK_THAT(told_of_header([](auto&, auto& segment) { ++segment.p_filesz; }), Contains(has + "segment 0 of "));
  CHECK_THAT(told_of_header([](auto&, auto& segment) { segment.p_type = PT_LOAD; }), Contains("found no Kiln note"));
  const std::string large(65537 - sizeof(PluginElfNote), '\0');
  CHECK_THAT(told_of_header([](auto&, auto& segment) { segment.p_filesz = 65537; }, large),
             Contains("inconsistent: note segment has 65537 bytes, expected at most 65536"));
  CHECK_THAT(told_of_header([](auto&, auto& segment) { segment.p_filesz = 65536; }, large), !Contains("at most 65536"));
}

TEST_CASE("note: sections that leave the file are refused with their place, unless they have no bytes in it") {
  const std::size_t bytes = library_of(note_of(plain_note())).size();
  const auto told = [&](const std::function<void(Elf64_Ehdr&)>& change, const Elf64_Shdr& section) {
    return told_of_header(
        [&](Elf64_Ehdr& header, Elf64_Phdr&) {
          header.e_shoff = bytes;
          header.e_shnum = 1;
          header.e_shentsize = sizeof(Elf64_Shdr);
          change(header);
        },
        {reinterpret_cast<const char*>(&section), sizeof section});
  };
  const auto as_it_is = [](Elf64_Ehdr&) {};
  const std::size_t all = bytes + sizeof(Elf64_Shdr);
  Elf64_Shdr section{};
  section.sh_type = SHT_PROGBITS;
  section.sh_size = all;
  CHECK(told(as_it_is, section).empty());
  section.sh_offset = 1;
  CHECK_THAT(told(as_it_is, section),
             Contains("truncated: file has " + std::to_string(all) + " bytes, expected section 0 of " +
                      std::to_string(all) + " bytes at offset 1"));
  for (const std::uint32_t type : {SHT_NOBITS, SHT_NULL}) {
    section.sh_type = type;
    CHECK(told(as_it_is, section).empty());
  }
  section.sh_type = SHT_PROGBITS;
  CHECK(told([](Elf64_Ehdr& header) { header.e_shnum = 0; }, section).empty());
  CHECK(told([](Elf64_Ehdr& header) { header.e_shoff = 0; }, section).empty());
  CHECK_THAT(told([](Elf64_Ehdr& header) { header.e_shnum = 2; }, section),
             Contains("expected section header table of 128 bytes at offset " + std::to_string(bytes)));
  CHECK_THAT(told([](Elf64_Ehdr& header) { header.e_shnum = 4097; }, section),
             Contains("inconsistent: 4097 section headers of 64 bytes, expected at most 4096 of 64 bytes"));
  CHECK_THAT(told([](Elf64_Ehdr& header) { header.e_shnum = 4096; }, section),
             Contains("section header table of 262144"));
  CHECK_THAT(told([](Elf64_Ehdr& header) { header.e_shentsize = 63; }, section),
             Contains("1 section headers of 63 bytes"));
}
