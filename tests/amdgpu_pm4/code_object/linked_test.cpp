// Linked files of a few bytes, made here field by field: where their segments lie, and what they may not say.
#include <elf.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "amdgpu_pm4/code_object/elf_file.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

constexpr std::uint64_t whole_image = 67108864;

ElfSegment segment_at(std::uint64_t address, std::uint64_t bytes, std::uint32_t flags = PF_R) {
  return {PT_LOAD, flags, address, bytes, {}};
}

std::string refusal_of_segments(std::vector<ElfSegment> segments) {
  ElfFile file;
  file.segments = std::move(segments);
  const auto laid = lay_out_linked(file);
  return laid ? std::string("it was laid out") : laid.error().text();
}

std::uint32_t word_of(const LaidOut& laid, std::size_t at) {
  std::uint32_t word = 0;
  for (std::size_t i = 0; i < 4; ++i) word |= static_cast<std::uint32_t>(laid.image.at(at + i)) << 8 * i;
  return word;
}

// A segment of 24 bytes at 0x2000, with a table of symbols and one of relocations.
struct LinkedFile {
  char names[12] = "\0here\0there";
  std::vector<Elf64_Sym> symbols{Elf64_Sym{}, symbol(1, 0x2008, 4), symbol(6, 0x2010, 8)};
  std::vector<Elf64_Rela> relocations;
  std::uint32_t table_type = SHT_RELA;
  std::uint64_t table_flags = SHF_ALLOC;
  bool twice = false;  // the table of symbols

  static Elf64_Sym symbol(std::uint32_t name, std::uint64_t value, std::uint64_t size, std::uint16_t section = 1) {
    Elf64_Sym made{};
    made.st_name = name;
    made.st_shndx = section;
    made.st_value = value;
    made.st_size = size;
    return made;
  }
  static Elf64_Rela relocation(std::uint64_t offset, std::uint32_t type, std::uint32_t index, std::int64_t addend) {
    return {offset, ELF64_R_INFO(static_cast<std::uint64_t>(index), type), addend};
  }
  Result<LaidOut> laid_out() const {
    ElfFile file;
    file.type = ElfType::linked;
    file.segments = {segment_at(0x2000, 24)};
    file.sections.resize(4);
    file.sections[1].contents = std::as_bytes(std::span(names));
    file.sections[2].name = ".dynsym";
    file.sections[2].type = SHT_DYNSYM;
    file.sections[2].entry_size = 24;
    file.sections[2].link = 1;
    file.sections[2].contents = std::as_bytes(std::span(symbols));
    file.sections[3].name = ".rela.dyn";
    file.sections[3].type = table_type;
    file.sections[3].flags = table_flags;
    file.sections[3].entry_size = 24;
    file.sections[3].contents = std::as_bytes(std::span(relocations));
    if (twice) file.sections.push_back(file.sections[2]);
    return lay_out_linked(file);
  }
  std::string refusal() const {
    const auto laid = laid_out();
    return laid ? std::string("it was laid out") : laid.error().text();
  }
};

}  // namespace

TEST_CASE("linked: segments keep their distances, and s_code_end fills what lies behind code") {
  const std::byte bytes[] = {std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}, std::byte{5}};
  ElfFile file;
  file.segments = {segment_at(0x1400, 5, PF_R), segment_at(0x1204, 8, PF_R | PF_X)};
  file.segments[0].contents = bytes;
  const auto laid = lay_out_linked(file);
  REQUIRE(laid);
  CHECK(laid->image.size() == 0x405);
  CHECK(laid->image[0x400] == std::byte{1});
  CHECK(laid->image[0x404] == std::byte{5});
  REQUIRE(laid->code.size() == 1);
  CHECK(laid->code[0].begin == 0x204);
  CHECK(laid->code[0].end == 0x20C);
  CHECK(word_of(*laid, 0x208) == 0);
  CHECK(word_of(*laid, 0x20C) == 0xBF9F0000);
  CHECK(word_of(*laid, 0x308) == 0xBF9F0000);  // the last of 64
  CHECK(word_of(*laid, 0x30C) == 0);

  file.segments[0].address = 0x1213;  // the filling ends in front of it
  const auto close = lay_out_linked(file);
  REQUIRE(close);
  CHECK(close->image.size() == 0x218);
  CHECK(word_of(*close, 0x20C) == 0xBF9F0000);
  CHECK(word_of(*close, 0x210) == 0x01000000);
}

TEST_CASE("linked: code at the end has 64 dwords behind it, other segments have none") {
  ElfFile file;
  file.segments = {segment_at(0x1000, 6, PF_R | PF_X)};
  const auto code = lay_out_linked(file);
  REQUIRE(code);
  CHECK(code->image.size() == 264);  // from the next whole dword, up to a whole one
  CHECK(code->image[7] == std::byte{0});
  CHECK(word_of(*code, 8) == 0xBF9F0000);
  CHECK(word_of(*code, 260) == 0xBF9F0000);
  file.segments = {segment_at(0x1000, 6)};
  const auto constants = lay_out_linked(file);
  REQUIRE(constants);
  CHECK(constants->image.size() == 6);
  CHECK(constants->code.empty());
}

TEST_CASE("linked: sizes and addresses of segments up to the last that is read") {
  CHECK(refusal_of_segments({}) == "corrupt: the code object has no segment to load");
  CHECK(refusal_of_segments({segment_at(0x1000, 0)}) == "corrupt: the code object has no segment to load");
  CHECK(refusal_of_segments({{PT_NOTE, PF_R, 0x1000, 8, {}}}) == "corrupt: the code object has no segment to load");
  CHECK(refusal_of_segments({segment_at(0x1000, 0), segment_at(0x1000, 8)}) == "it was laid out");
  CHECK(refusal_of_segments({segment_at(0x1000, whole_image)}) == "it was laid out");
  CHECK(refusal_of_segments({segment_at(0x1000, whole_image + 1)}) ==
        "corrupt: segment at address 4096 has 67108865 bytes, expected at most 67108864");
  CHECK(refusal_of_segments({segment_at(0xFFFFFFFFF7FFFFFF, 4)}) == "it was laid out");
  CHECK(refusal_of_segments({segment_at(0xFFFFFFFFF8000000, 4)}) ==
        "corrupt: segment address is 18446744073575333888, expected at most 18446744073575333887");
  CHECK(refusal_of_segments({segment_at(0x1000, 8), segment_at(0x1008, 8)}) == "it was laid out");
  CHECK(refusal_of_segments({segment_at(0x1000, 8), segment_at(0x1007, 8)}) == "corrupt: segments overlap");
  CHECK(refusal_of_segments({segment_at(0x1008, 8), segment_at(0x1000, 9)}) == "corrupt: segments overlap");
  CHECK(refusal_of_segments({segment_at(0x1000, 8), segment_at(0x1000 + whole_image - 4, 4)}) == "it was laid out");
  CHECK(refusal_of_segments({segment_at(0x1000, 8), segment_at(0x1000 + whole_image - 3, 4)}) ==
        "unsupported: segments span more than 67108864 bytes");
}

TEST_CASE("linked: a writable segment is read where relocation alone writes it") {
  const ElfSegment writable = segment_at(0x1010, 16, PF_R | PF_W);
  const auto with = [&](std::uint32_t type, std::uint64_t address, std::uint64_t bytes) {
    return refusal_of_segments({writable, {type, PF_R, address, bytes, {}}});
  };
  const std::string refused = "unsupported: variables outside kernels must be constant, found a writable segment";
  CHECK(refusal_of_segments({writable}) == refused);
  CHECK(with(PT_GNU_RELRO, 0x1010, 16) == "it was laid out");
  CHECK(with(PT_GNU_RELRO, 0x1008, 24) == "it was laid out");
  CHECK(with(PT_GNU_RELRO, 0x1000, 4096) == "it was laid out");
  CHECK(with(PT_GNU_RELRO, 0x1010, 15) == refused);
  CHECK(with(PT_GNU_RELRO, 0x1008, 23) == refused);
  CHECK(with(PT_GNU_RELRO, 0x1011, 16) == refused);
  CHECK(with(PT_GNU_RELRO, 0x1011, 32) == refused);
  CHECK(with(PT_NOTE, 0x1010, 16) == refused);
}

TEST_CASE("linked: symbols lie within the image, reserved and undefined ones are passed over") {
  LinkedFile file;
  const auto laid = file.laid_out();
  REQUIRE(laid);
  REQUIRE(laid->symbols.size() == 2);
  CHECK(laid->symbols[0].name == "here");
  CHECK(laid->symbols[0].offset == 8);
  CHECK(laid->symbols[0].size == 4);
  CHECK(laid->symbols[1].name == "there");
  CHECK(laid->symbols[1].offset == 16);
  CHECK(laid->symbols[1].size == 8);
  const std::string outside = "corrupt: symbol 'here' is outside the loaded segments";
  const auto with = [&file](const Elf64_Sym& symbol) {
    file.symbols[1] = symbol;
    return file.refusal();
  };
  CHECK(with(LinkedFile::symbol(1, 0x2000, 24)) == "it was laid out");
  CHECK(with(LinkedFile::symbol(1, 0x2000, 25)) == outside);
  CHECK(with(LinkedFile::symbol(1, 0x2018, 0)) == "it was laid out");
  CHECK(with(LinkedFile::symbol(1, 0x2019, 0)) == outside);
  CHECK(with(LinkedFile::symbol(1, 0x1FFF, 1)) == outside);
  CHECK(with(LinkedFile::symbol(1, 0x2001, ~std::uint64_t{0})) == outside);
  CHECK(with(LinkedFile::symbol(1, 0x9000, 4, 0xFEFF)) == outside);
  for (const Elf64_Sym& passed_over : {LinkedFile::symbol(1, 0x9000, 4, SHN_UNDEF),
                                       LinkedFile::symbol(1, 0x9000, 4, 0xFF00), LinkedFile::symbol(0, 0x9000, 4)}) {
    file.symbols[1] = passed_over;
    const auto without = file.laid_out();
    REQUIRE(without);
    REQUIRE(without->symbols.size() == 1);
    CHECK(without->symbols[0].name == "there");
  }
  file.twice = true;
  CHECK(file.refusal() == "corrupt: the code object has more than one dynamic symbol table");
}

TEST_CASE("linked: relocated words and their targets lie within the image") {
  LinkedFile file;
  file.relocations = {LinkedFile::relocation(0, relocation_none, 0, 0),
                      LinkedFile::relocation(0x2010, relocation_relative64, 0, 0x2018),
                      LinkedFile::relocation(0x2000, relocation_abs64, 1, 3)};
  const auto laid = file.laid_out();
  REQUIRE(laid);
  REQUIRE(laid->address_words.size() == 2);
  CHECK(laid->address_words[0].offset == 16);
  CHECK(laid->address_words[0].target == 24);
  CHECK(laid->address_words[1].offset == 0);
  CHECK(laid->address_words[1].target == 11);
  const auto with = [&file](std::uint64_t offset, std::uint32_t type, std::uint32_t symbol, std::int64_t addend) {
    file.relocations = {LinkedFile::relocation(offset, type, symbol, addend)};
    return file.refusal();
  };
  CHECK(with(0x2011, relocation_relative64, 0, 0x2000) ==
        "corrupt: relocation 13 (R_AMDGPU_RELATIVE64) at address 8209 is, or points, outside the loaded segments");
  CHECK(with(0x2000, relocation_relative64, 0, 0x2019) ==
        "corrupt: relocation 13 (R_AMDGPU_RELATIVE64) at address 8192 is, or points, outside the loaded segments");
  CHECK(with(0x1FFF, relocation_relative64, 0, 0x2000) ==
        "corrupt: relocation 13 (R_AMDGPU_RELATIVE64) at address 8191 is, or points, outside the loaded segments");
  CHECK(with(0x2000, relocation_relative64, 0, 0x2000) == "it was laid out");
  CHECK(with(0x2000, relocation_relative64, 0, 0x1FFF) ==
        "corrupt: relocation 13 (R_AMDGPU_RELATIVE64) at address 8192 is, or points, outside the loaded segments");
  CHECK(with(0x2000, relocation_abs64, 2, 8) == "it was laid out");
  CHECK(with(0x2000, relocation_abs64, 2, 9) ==
        "corrupt: relocation 3 (R_AMDGPU_ABS64) at address 8192 is, or points, outside the loaded segments");
  for (const std::uint32_t none : {0u, 3u}) {
    CHECK(with(0x2000, relocation_abs64, none, 0) ==
          "unsupported: relocation 3 (R_AMDGPU_ABS64) is not supported in linked files");
  }
  CHECK(with(0x2000, relocation_rel64, 1, 0) ==
        "unsupported: relocation 5 (R_AMDGPU_REL64) is not supported in linked files");
  file.symbols[2].st_shndx = SHN_UNDEF;
  CHECK(with(0x2000, relocation_abs64, 2, 0) ==
        "unsupported: function or variable 'there' has no definition in the text");
}

TEST_CASE("linked: relocations of another form are refused where they are loaded") {
  LinkedFile file;
  file.relocations = {LinkedFile::relocation(0x2000, 77, 0, 0)};
  CHECK(file.refusal() == "unsupported: relocation 77 is not supported in linked files");
  file.table_type = SHT_REL;
  CHECK(file.refusal() == "unsupported: relocations without addends (SHT_REL) are not supported");
  file.table_type = SHT_RELR;
  CHECK(file.refusal() == "unsupported: packed relative relocations (SHT_RELR) are not supported");
  for (const std::uint32_t type : {SHT_REL, SHT_RELR, SHT_RELA}) {
    file.table_type = type;
    file.table_flags = SHF_EXECINSTR;
    CHECK(file.refusal() == "it was laid out");
  }
}

}  // namespace kiln::amdgpu_pm4
