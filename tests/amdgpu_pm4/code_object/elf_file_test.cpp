// ELF files of a few bytes, made here field by field: what is read from them, and what each field may not say.
#include "amdgpu_pm4/code_object/elf_file.hpp"

#include <elf.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace kiln::amdgpu_pm4 {
namespace {

using FileBytes = std::vector<std::byte>;

// One segment, and four sections: none, names, bytes, and one without contents in the file.
struct SmallFile {
  Elf64_Ehdr header{};
  Elf64_Phdr segments[1]{};
  Elf64_Shdr sections[4]{};
  char names[24] = "\0.names\0.bytes\0.empty";
  char bytes[8] = {1, 2, 3, 4, 5, 6, 7, 8};

  SmallFile() {
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_VERSION] = EV_CURRENT;
    header.e_ident[EI_OSABI] = 64;
    header.e_ident[EI_ABIVERSION] = 3;
    header.e_type = ET_DYN;
    header.e_machine = 224;
    header.e_version = EV_CURRENT;
    header.e_flags = 0x41;
    header.e_ehsize = 64;
    header.e_phentsize = 56;
    header.e_phnum = 1;
    header.e_phoff = offset_of(segments);
    header.e_shentsize = 64;
    header.e_shnum = 4;
    header.e_shoff = offset_of(sections);
    header.e_shstrndx = 1;
    segments[0].p_type = PT_LOAD;
    segments[0].p_flags = PF_R | PF_X;
    segments[0].p_offset = offset_of(bytes);
    segments[0].p_vaddr = 0x1000;
    segments[0].p_filesz = 8;
    segments[0].p_memsz = 12;
    sections[1].sh_name = 1;
    sections[1].sh_type = SHT_STRTAB;
    sections[1].sh_offset = offset_of(names);
    sections[1].sh_size = sizeof names;
    sections[2].sh_name = 8;
    sections[2].sh_type = SHT_PROGBITS;
    sections[2].sh_flags = SHF_ALLOC | SHF_EXECINSTR;
    sections[2].sh_addr = 0x1000;
    sections[2].sh_offset = offset_of(bytes);
    sections[2].sh_size = 8;
    sections[2].sh_link = 1;
    sections[2].sh_info = 2;
    sections[2].sh_addralign = 256;
    sections[2].sh_entsize = 4;
    sections[3].sh_name = 15;
    sections[3].sh_type = SHT_NOBITS;
    sections[3].sh_offset = 1 << 20;
    sections[3].sh_size = 1 << 20;
  }
  std::uint64_t offset_of(const void* member) const {
    return static_cast<std::uint64_t>(static_cast<const char*>(member) - reinterpret_cast<const char*>(this));
  }
  FileBytes file() const {
    const auto* const begin = reinterpret_cast<const std::byte*>(this);
    return {begin, begin + sizeof *this};
  }
};

std::string refusal_of_change(const std::function<void(SmallFile&)>& change) {
  SmallFile changed;
  change(changed);
  const auto read = read_elf(changed.file());
  return read ? std::string("it was read") : read.error().text();
}

}  // namespace

TEST_CASE("elf: every field of a small file is read") {
  const FileBytes bytes = SmallFile().file();
  const auto read = read_elf(bytes);
  INFO((read ? std::string() : read.error().text()));
  REQUIRE(read.has_value());
  CHECK(read->type == ElfType::linked);
  CHECK(read->abi_version == 3);
  CHECK(read->flags == 0x41);
  REQUIRE(read->sections.size() == 4);
  CHECK(read->sections[0].alignment == 1);  // 0 in the file
  CHECK(read->sections[0].contents.empty());
  const ElfSection& section = read->sections[2];
  CHECK(section.name == ".bytes");
  CHECK(section.type == SHT_PROGBITS);
  CHECK(section.flags == (SHF_ALLOC | SHF_EXECINSTR));
  CHECK(section.address == 0x1000);
  CHECK(section.size == 8);
  CHECK(section.alignment == 256);
  CHECK(section.entry_size == 4);
  CHECK(section.link == 1);
  CHECK(section.info == 2);
  REQUIRE(section.contents.size() == 8);
  CHECK(section.contents[0] == std::byte{1});
  CHECK(section.contents[7] == std::byte{8});
  CHECK(read->sections[3].name == ".empty");
  CHECK(read->sections[3].size == 1 << 20);
  CHECK(read->sections[3].contents.empty());
  REQUIRE(read->segments.size() == 1);
  CHECK(read->segments[0].type == PT_LOAD);
  CHECK(read->segments[0].flags == (PF_R | PF_X));
  CHECK(read->segments[0].address == 0x1000);
  CHECK(read->segments[0].memory_bytes == 12);
  CHECK(read->segments[0].contents.size() == 8);

  SmallFile bare;
  bare.header.e_type = ET_REL;
  bare.header.e_shnum = bare.header.e_phnum = 0;
  bare.header.e_shentsize = bare.header.e_phentsize = 0;
  const FileBytes bare_bytes = bare.file();
  const auto nothing = read_elf(std::span(bare_bytes).first(64));
  REQUIRE(nothing.has_value());
  CHECK(nothing->type == ElfType::relocatable);
  CHECK(nothing->sections.empty());
  CHECK(nothing->segments.empty());
  CHECK(read_elf(std::span(bare_bytes).first(63)).error().text() ==
        "corrupt: the code object has 63 bytes, expected at least 64 for the ELF header");

  SmallFile nameless;
  nameless.header.e_shstrndx = SHN_UNDEF;
  const FileBytes nameless_bytes = nameless.file();
  const auto unnamed = read_elf(nameless_bytes);
  REQUIRE(unnamed.has_value());
  CHECK(unnamed->sections[2].name.empty());
}

TEST_CASE("elf: a field of the header that does not hold is refused with both sides") {
  using Change = std::function<void(SmallFile&)>;
  const std::pair<Change, const char*> refusals[] = {
      {[](SmallFile& f) { f.header.e_ident[0] = 0; }, "corrupt: the code object is not an ELF file"},
      {[](SmallFile& f) { f.header.e_ident[EI_CLASS] = 1; }, "unsupported: ELF class 1, expected 2 (64-bit)"},
      {[](SmallFile& f) { f.header.e_ident[EI_DATA] = 2; },
       "unsupported: ELF byte order 2, expected 1 (little-endian)"},
      {[](SmallFile& f) { f.header.e_ident[EI_VERSION] = 0; }, "unsupported: ELF version 0, expected 1"},
      {[](SmallFile& f) { f.header.e_version = 2; }, "unsupported: ELF version 2, expected 1"},
      {[](SmallFile& f) { f.header.e_machine = 62; }, "unsupported: ELF machine 62, expected 224 (AMD GPU)"},
      {[](SmallFile& f) { f.header.e_ident[EI_OSABI] = 0; }, "unsupported: ELF OS ABI 0, expected 64 (HSA)"},
      {[](SmallFile& f) { f.header.e_type = ET_EXEC; },
       "unsupported: ELF type 2, expected 1 (relocatable) or 3 (shared object)"},
      {[](SmallFile& f) { f.header.e_ehsize = 52; }, "corrupt: ELF header has 52 bytes, expected 64"}};
  for (const auto& [change, text] : refusals) CHECK(refusal_of_change(change) == text);
}

TEST_CASE("elf: sections that do not hold are refused with both sides") {
  using Change = std::function<void(SmallFile&)>;
  constexpr std::uint64_t size = sizeof(SmallFile);
  const std::pair<Change, const char*> refusals[] = {
      {[](SmallFile& f) { f.header.e_shentsize = 40; }, "corrupt: section header size is 40 bytes, expected 64"},
      {[](SmallFile& f) { f.header.e_shnum = 4097; }, "corrupt: 4097 sections, expected at most 4096"},
      {[](SmallFile& f) { f.header.e_shnum = 4096; }, "corrupt: 4096 section headers reach beyond the end of the file"},
      {[](SmallFile& f) { f.header.e_shoff = size - 4 * 64 + 1; },
       "corrupt: 4 section headers reach beyond the end of the file"},
      {[](SmallFile& f) { f.header.e_shoff = ~std::uint64_t{0}; },
       "corrupt: 4 section headers reach beyond the end of the file"},
      {[](SmallFile& f) { f.sections[2].sh_size = 9; }, "corrupt: section 2 reaches beyond the end of the file"},
      {[](SmallFile& f) { f.sections[2].sh_offset = size + 1; },
       "corrupt: section 2 reaches beyond the end of the file"},
      {[](SmallFile& f) { f.sections[2].sh_addralign = 3; },
       "corrupt: section 2 is aligned to 3 bytes, expected a power of two up to 4096"},
      {[](SmallFile& f) { f.sections[2].sh_addralign = 8192; },
       "corrupt: section 2 is aligned to 8192 bytes, expected a power of two up to 4096"},
      {[](SmallFile& f) { f.header.e_shstrndx = 4; }, "corrupt: section name table has index 4, expected less than 4"},
      {[](SmallFile& f) { f.sections[3].sh_name = 24; },
       "corrupt: section name at offset 24 is outside the string table of 24 bytes"},
      {[](SmallFile& f) { f.names[21] = f.names[22] = f.names[23] = 'x'; },
       "corrupt: section name has no terminating NUL"}};
  for (const auto& [change, text] : refusals) CHECK(refusal_of_change(change) == text);
  CHECK(refusal_of_change([](SmallFile& f) { f.sections[2].sh_addralign = 4096; }) == "it was read");
  CHECK(refusal_of_change([](SmallFile& f) { f.sections[3].sh_name = 23; }) == "it was read");
  CHECK(refusal_of_change([](SmallFile& f) { f.sections[2].sh_size = 0, f.sections[2].sh_offset = size; }) ==
        "it was read");
}

TEST_CASE("elf: segments that do not hold are refused with both sides") {
  using Change = std::function<void(SmallFile&)>;
  constexpr std::uint64_t size = sizeof(SmallFile);
  const std::pair<Change, const char*> refusals[] = {
      {[](SmallFile& f) { f.header.e_phentsize = 32; }, "corrupt: program header size is 32 bytes, expected 56"},
      {[](SmallFile& f) { f.header.e_phnum = 65; }, "corrupt: 65 segments, expected at most 64"},
      {[](SmallFile& f) { f.header.e_phnum = 64; }, "corrupt: 64 program headers reach beyond the end of the file"},
      {[](SmallFile& f) { f.header.e_phoff = size - 56 + 1; },
       "corrupt: 1 program headers reach beyond the end of the file"},
      {[](SmallFile& f) { f.segments[0].p_filesz = 9; }, "corrupt: segment 0 reaches beyond the end of the file"},
      {[](SmallFile& f) { f.segments[0].p_memsz = 7; },
       "corrupt: segment 0 has 8 bytes in the file, expected at most 7 (its memory size)"}};
  for (const auto& [change, text] : refusals) CHECK(refusal_of_change(change) == text);
  CHECK(refusal_of_change([](SmallFile& f) { f.segments[0].p_memsz = 8; }) == "it was read");
  CHECK(refusal_of_change([](SmallFile& f) { f.segments[0].p_memsz = 7, f.segments[0].p_type = PT_NOTE; }) ==
        "it was read");
}

TEST_CASE("elf: symbols and relocations are whole entries with names inside their table") {
  const char strings[] = "\0kernel\0tail";
  ElfFile file;
  file.sections.resize(2);
  file.sections[1].contents = std::as_bytes(std::span(strings));
  Elf64_Sym symbols[2]{};
  symbols[1].st_name = 1;
  symbols[1].st_shndx = 7;
  symbols[1].st_value = 256;
  symbols[1].st_size = 64;
  ElfSection table;
  table.name = ".symtab";
  table.entry_size = 24;
  table.link = 1;
  table.contents = std::as_bytes(std::span(symbols));
  const auto read = read_symbols(file, table);
  REQUIRE(read.has_value());
  REQUIRE(read->size() == 2);
  CHECK(read->at(0).name.empty());
  CHECK(read->at(1).name == "kernel");
  CHECK(read->at(1).section == 7);
  CHECK(read->at(1).value == 256);
  CHECK(read->at(1).size == 64);
  const auto refusal = [&](auto change) {
    ElfSection changed = table;
    change(changed);
    const auto refused = read_symbols(file, changed);
    return refused ? std::string("it was read") : refused.error().text();
  };
  CHECK(refusal([](ElfSection& s) { s.entry_size = 16; }) ==
        "corrupt: section '.symtab' has 48 bytes in entries of 16, expected whole entries of 24");
  CHECK(refusal([](ElfSection& s) { s.contents = s.contents.first(47); }) ==
        "corrupt: section '.symtab' has 47 bytes in entries of 24, expected whole entries of 24");
  CHECK(refusal([](ElfSection& s) { s.link = 2; }) ==
        "corrupt: section '.symtab' has its names in section 2, expected a number less than 2");
  symbols[1].st_name = 13;
  CHECK(refusal([](ElfSection&) {}) == "corrupt: symbol name at offset 13 is outside the string table of 13 bytes");

  const Elf64_Rela relocations[] = {{0x40, ELF64_R_INFO(9, 3), -8}, {0x48, ELF64_R_INFO(1, 13), 1}};
  ElfSection section;
  section.name = ".rela";
  section.entry_size = 24;
  section.contents = std::as_bytes(std::span(relocations));
  const auto found = read_relocations(section);
  REQUIRE(found.has_value());
  REQUIRE(found->size() == 2);
  CHECK(found->at(0).offset == 0x40);
  CHECK(found->at(0).type == 3);
  CHECK(found->at(0).symbol == 9);
  CHECK(found->at(0).addend == -8);
  CHECK(found->at(1).type == 13);
  section.entry_size = 0;
  CHECK(read_relocations(section).error().text() ==
        "corrupt: section '.rela' has 48 bytes in entries of 0, expected whole entries of 24");
}

}  // namespace kiln::amdgpu_pm4
