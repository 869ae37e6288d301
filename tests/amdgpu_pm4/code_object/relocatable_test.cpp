// Relocatable files of a few bytes, made here field by field: where their sections get places, what relocations write,
// and what they may not say.
#include <elf.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "amdgpu_pm4/code_object/elf_file.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

// Sections: 1 code of 8 bytes, which lies at 0 to 8 of the image; 2 constants of 16 bytes, at 264 to 280; 3 names;
// 4 symbols; 5 relocations of the constants; 6 bytes that are not loaded.
struct RelocatableFile {
  char names[16] = "\0code\0two\0three";
  std::byte bytes[16]{};
  Elf64_Sym symbols[4] = {Elf64_Sym{}, {1, 0, 0, 1, 0, 8}, {6, 0, 0, 2, 4, 4}, {10, 0, 0, 2, 8, 8}};
  Elf64_Rela relocation{0, ELF64_R_INFO(std::uint64_t{1}, relocation_none), 0};
  ElfFile file;

  RelocatableFile() {
    file.type = ElfType::relocatable;
    file.sections.resize(7);
    for (std::byte& each : bytes) each = std::byte{0xAA};
    fill(1, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, std::span(bytes).first(8));
    fill(2, ".rodata", SHT_PROGBITS, SHF_ALLOC, bytes);
    fill(3, ".strtab", SHT_STRTAB, 0, std::as_bytes(std::span(names)));
    fill(4, ".symtab", SHT_SYMTAB, 0, std::as_bytes(std::span(symbols)));
    fill(5, ".rela.rodata", SHT_RELA, 0, std::as_bytes(std::span(&relocation, 1)));
    fill(6, ".debug", SHT_PROGBITS, 0, bytes);
    file.sections[2].alignment = 8;
    file.sections[4].entry_size = 24, file.sections[4].link = 3;
    file.sections[5].entry_size = 24, file.sections[5].link = 4, file.sections[5].info = 2;
  }
  RelocatableFile(const RelocatableFile&) = delete;
  RelocatableFile& operator=(const RelocatableFile&) = delete;

  void fill(std::size_t i, const char* name, std::uint32_t type, std::uint64_t flags,
            std::span<const std::byte> contents) {
    file.sections[i] = {name, type, flags, 0, contents.size(), 1, 0, 0, 0, contents};
  }
  void relocate(std::uint64_t offset, std::uint32_t type, std::uint32_t symbol, std::int64_t addend) {
    relocation = {offset, ELF64_R_INFO(static_cast<std::uint64_t>(symbol), type), addend};
  }
  std::string refusal() const {
    const auto laid = lay_out_relocatable(file);
    return laid ? std::string("it was laid out") : laid.error().text();
  }
  // The constants once they are relocated.
  std::vector<std::uint32_t> constants() const {
    const auto laid = lay_out_relocatable(file);
    INFO((laid ? std::string() : laid.error().text()));
    REQUIRE(laid);
    REQUIRE(laid->image.size() == 280);
    std::vector<std::uint32_t> words(4);
    std::memcpy(words.data(), laid->image.data() + 264, 16);
    return words;
  }
};

using ChangeOfFile = std::function<void(RelocatableFile&)>;

std::string refusal_of_file(const ChangeOfFile& change) {
  RelocatableFile changed;
  change(changed);
  return changed.refusal();
}

std::string refusal_of_relocation(std::uint64_t offset, std::uint32_t type, std::uint32_t symbol, std::int64_t addend) {
  return refusal_of_file([&](RelocatableFile& f) { f.relocate(offset, type, symbol, addend); });
}

}  // namespace

TEST_CASE("relocatable: code lies first, constants behind what follows it") {
  const RelocatableFile made;
  const auto laid = lay_out_relocatable(made.file);
  REQUIRE(laid);
  CHECK(laid->image.size() == 280);
  CHECK(laid->image[7] == std::byte{0xAA});
  CHECK(laid->image[264] == std::byte{0xAA});
  REQUIRE(laid->code.size() == 1);
  CHECK(laid->code[0].begin == 0);
  CHECK(laid->code[0].end == 8);
  REQUIRE(laid->symbols.size() == 3);
  CHECK(laid->symbols[0].name == "code");
  CHECK(laid->symbols[0].offset == 0);
  CHECK(laid->symbols[0].size == 8);
  CHECK(laid->symbols[1].name == "two");
  CHECK(laid->symbols[1].offset == 268);
  CHECK(laid->symbols[2].offset == 272);
}

TEST_CASE("relocatable: pieces of code begin at multiples of 256, or of more") {
  RelocatableFile made;
  made.file.sections[2].flags = SHF_ALLOC | SHF_EXECINSTR;
  const auto two = lay_out_relocatable(made.file);
  REQUIRE(two);
  REQUIRE(two->code.size() == 2);
  CHECK(two->code[1].begin == 512);
  CHECK(two->code[1].end == 528);
  CHECK(two->image.size() == 784);
  made.file.sections[2].alignment = 1024;
  const auto far = lay_out_relocatable(made.file);
  REQUIRE(far);
  CHECK(far->code.at(1).begin == 1024);
}

TEST_CASE("relocatable: a section that is not loaded has no place") {
  const auto image = [](const ChangeOfFile& change) {
    RelocatableFile made;
    change(made);
    const auto laid = lay_out_relocatable(made.file);
    return laid ? std::to_string(laid->image.size()) : laid.error().text();
  };
  CHECK(image([](RelocatableFile& f) { f.file.sections[2].flags = 0; }) == "264");
  CHECK(image([](RelocatableFile& f) { f.file.sections[2].type = SHT_NOTE; }) == "264");
  CHECK(image([](RelocatableFile& f) { f.file.sections[2].size = 0; }) == "264");
  CHECK(image([](RelocatableFile& f) { f.file.sections[2].type = SHT_NOBITS, f.file.sections[2].contents = {}; }) ==
        "280");
  CHECK(image([](RelocatableFile& f) { f.file.sections[1].flags = f.file.sections[2].flags = 0; }) ==
        "corrupt: the code object has no section to load");
}

TEST_CASE("relocatable: sections that cannot be placed are named") {
  const std::pair<ChangeOfFile, const char*> refusals[] = {
      {[](RelocatableFile& f) { f.file.sections[2].type = SHT_INIT_ARRAY; },
       "unsupported: section '.rodata' has type 14, expected 1 (PROGBITS) or 8 (NOBITS)"},
      {[](RelocatableFile& f) { f.file.sections[2].flags |= SHF_TLS; },
       "unsupported: section '.rodata': thread-local variables are not supported"},
      {[](RelocatableFile& f) { f.file.sections[2].flags |= SHF_WRITE; },
       "unsupported: variables 'two', 'three' outside kernels can be written by a kernel; only constant variables are "
       "supported. Pass the variables as bindings"},
      {[](RelocatableFile& f) { f.file.sections[2].flags |= SHF_WRITE, f.symbols[3].st_size = 0; },
       "unsupported: variable 'two' outside kernels can be written by a kernel; only constant variables are "
       "supported. Pass the variable as a binding"},
      {[](RelocatableFile& f) { f.file.sections[2].flags |= SHF_WRITE, f.symbols[2].st_shndx = 1; },
       "unsupported: variable 'three' outside kernels can be written by a kernel; only constant variables are "
       "supported. Pass the variable as a binding"},
      {[](RelocatableFile& f) { f.file.sections[2].flags |= SHF_WRITE, f.symbols[2].st_name = 0; },
       "unsupported: variable 'three' outside kernels can be written by a kernel; only constant variables are "
       "supported. Pass the variable as a binding"},
      {[](RelocatableFile& f) { f.file.sections[2].flags |= SHF_WRITE, f.file.sections[4].type = SHT_DYNSYM; },
       "unsupported: section '.rodata' is writable; only constant variables are supported outside kernels"},
      {[](RelocatableFile& f) { f.file.sections[2].flags |= SHF_WRITE, f.file.sections[4].entry_size = 16; },
       "unsupported: section '.rodata' is writable; only constant variables are supported outside kernels"},
      {[](RelocatableFile& f) {
         f.file.sections[2].flags |= SHF_WRITE, f.file.sections[2].name = ".data.rel.ro.local";
       },
       "it was laid out"},
      {[](RelocatableFile& f) { f.file.sections[4].entry_size = 16; },
       "corrupt: section '.symtab' has 96 bytes in entries of 16, expected whole entries of 24"},
      {[](RelocatableFile& f) { f.file.sections[6] = f.file.sections[4]; },
       "corrupt: the code object has more than one symbol table"}};
  for (const auto& [change, text] : refusals) CHECK(refusal_of_file(change) == text);
}

TEST_CASE("relocatable: a symbol ends within the image, and lies in a section up to its end") {
  CHECK(refusal_of_file([](RelocatableFile& f) { f.symbols[1].st_size = 280; }) == "it was laid out");
  CHECK(refusal_of_file([](RelocatableFile& f) { f.symbols[1].st_size = 281; }) ==
        "corrupt: symbol 'code' reaches beyond the end of the image");
  CHECK(refusal_of_file([](RelocatableFile& f) { f.symbols[1].st_size = 281, f.symbols[1].st_name = 0; }) ==
        "it was laid out");
  const auto count = [](const ChangeOfFile& change) {
    RelocatableFile made;
    change(made);
    const auto laid = lay_out_relocatable(made.file);
    REQUIRE(laid);
    return laid->symbols.size();
  };
  CHECK(count([](RelocatableFile& f) { f.symbols[1].st_value = 8; }) == 3);
  CHECK(count([](RelocatableFile& f) { f.symbols[1].st_value = 9; }) == 2);
  CHECK(count([](RelocatableFile& f) { f.symbols[1].st_shndx = SHN_UNDEF; }) == 2);
  CHECK(count([](RelocatableFile& f) { f.symbols[1].st_shndx = 6; }) == 2);
  CHECK(count([](RelocatableFile& f) { f.symbols[1].st_shndx = 7; }) == 2);
  CHECK(count([](RelocatableFile& f) { f.symbols[1].st_shndx = SHN_ABS; }) == 2);
}

TEST_CASE("relocatable: each relocation writes its bytes and no others") {
  using Words = std::vector<std::uint32_t>;
  constexpr std::uint32_t kept = 0xAAAAAAAA;
  struct Row {
    std::uint32_t type;
    std::uint64_t offset;
    std::int64_t addend;
    Words words;
  };
  // The symbol lies at 0 of the image, the word at 264 + offset.
  const Row rows[] = {{relocation_none, 0, 7, {kept, kept, kept, kept}},
                      {relocation_rel32, 4, 0, {kept, 0xFFFFFEF4, kept, kept}},
                      {relocation_rel64, 4, 0, {kept, 0xFFFFFEF4, 0xFFFFFFFF, kept}},
                      {relocation_rel64, 8, 274, {kept, kept, 2, 0}},
                      {relocation_rel32_lo, 0, 0x123456789 + 264, {0x23456789, kept, kept, kept}},
                      {relocation_rel32_hi, 0, 0x123456789 + 264, {1, kept, kept, kept}},
                      {relocation_rel32_hi, 0, 0, {0xFFFFFFFF, kept, kept, kept}},
                      {relocation_abs64, 8, 5, {kept, kept, kept, kept}}};
  for (const Row& row : rows) {
    RelocatableFile made;
    made.relocate(row.offset, row.type, 1, row.addend);
    INFO("relocation " << row.type);
    CHECK(made.constants() == row.words);
  }
  RelocatableFile made;
  made.relocate(8, relocation_abs64, 2, 5);
  const auto laid = lay_out_relocatable(made.file);
  REQUIRE(laid);
  REQUIRE(laid->address_words.size() == 1);
  CHECK(laid->address_words[0].offset == 272);
  CHECK(laid->address_words[0].target == 273);
}

TEST_CASE("relocatable: distances and places up to the last that fit") {
  const std::string of_section = "corrupt: section '.rela.rodata': ";
  const std::string too_far = of_section + "relocation 4 (R_AMDGPU_REL32) needs a distance of more than 32 bits";
  CHECK(refusal_of_relocation(0, relocation_rel32, 1, 264 + std::int64_t{2147483647}) == "it was laid out");
  CHECK(refusal_of_relocation(0, relocation_rel32, 1, 264 + std::int64_t{2147483648}) == too_far);
  CHECK(refusal_of_relocation(0, relocation_rel32, 1, 264 - std::int64_t{2147483648}) == "it was laid out");
  CHECK(refusal_of_relocation(0, relocation_rel32, 1, 264 - std::int64_t{2147483649}) == too_far);
  CHECK(refusal_of_relocation(0, relocation_rel32_lo, 1, std::int64_t{1} << 40) == "it was laid out");
  CHECK(refusal_of_relocation(0, relocation_abs64, 1, 280) == "it was laid out");
  CHECK(refusal_of_relocation(0, relocation_abs64, 1, 281) ==
        of_section + "relocation 3 (R_AMDGPU_ABS64) points outside the image");
  CHECK(refusal_of_relocation(8, relocation_rel64, 1, 0) == "it was laid out");
  CHECK(refusal_of_relocation(9, relocation_rel64, 1, 0) ==
        of_section + "relocation 5 (R_AMDGPU_REL64) at offset 9 reaches beyond the 16 bytes of the section");
  CHECK(refusal_of_relocation(12, relocation_rel32, 1, 0) == "it was laid out");
  CHECK(refusal_of_relocation(13, relocation_rel32, 1, 0) ==
        of_section + "relocation 4 (R_AMDGPU_REL32) at offset 13 reaches beyond the 16 bytes of the section");
  CHECK(refusal_of_relocation(~std::uint64_t{0}, relocation_rel32, 1, 0) ==
        of_section +
            "relocation 4 (R_AMDGPU_REL32) at offset 18446744073709551615 reaches beyond the 16 bytes of the "
            "section");
}

TEST_CASE("relocatable: a relocation's symbol and tables must be there") {
  const std::string of_section = "corrupt: section '.rela.rodata': ";
  CHECK(refusal_of_relocation(0, relocation_rel64, 3, 0) == "it was laid out");
  for (const std::uint32_t symbol : {0u, 4u}) {
    CHECK(refusal_of_relocation(0, relocation_rel64, symbol, 0) ==
          of_section + "relocation 5 (R_AMDGPU_REL64) refers to symbol " + std::to_string(symbol) +
              ", expected at least 1 and less than 4");
  }
  CHECK(refusal_of_relocation(0, 7, 1, 0) ==
        "unsupported: section '.rela.rodata': relocation 7 (R_AMDGPU_GOTPCREL) is not supported");
  const auto undefined = [](std::uint32_t type) {
    return refusal_of_file([type](RelocatableFile& f) { f.symbols[2].st_shndx = 0, f.relocate(0, type, 2, 0); });
  };
  CHECK(undefined(relocation_rel64) == "unsupported: function or variable 'two' has no definition in the text");
  CHECK(undefined(7) == "unsupported: section '.rela.rodata': relocation 7 (R_AMDGPU_GOTPCREL) is not supported");
  CHECK(undefined(relocation_none) == "it was laid out");
  CHECK(refusal_of_file([](RelocatableFile& f) { f.symbols[2].st_value = 17, f.relocate(0, 5, 2, 0); }) ==
        of_section + "symbol 'two' is outside the loaded sections");
  const std::pair<ChangeOfFile, const char*> refusals[] = {
      {[](RelocatableFile& f) { f.file.sections[5].info = 7; },
       "corrupt: section '.rela.rodata' relocates section 7, expected a number less than 7"},
      {[](RelocatableFile& f) { f.file.sections[5].info = 6, f.file.sections[5].entry_size = 0; }, "it was laid out"},
      {[](RelocatableFile& f) { f.file.sections[5].type = SHT_REL; },
       "unsupported: section '.rela.rodata' has unsupported relocations without addends"},
      {[](RelocatableFile& f) { f.file.sections[5].link = 3; },
       "corrupt: section '.rela.rodata' refers to symbols of section 3, which is not the symbol table"},
      {[](RelocatableFile& f) { f.file.sections[4].type = SHT_DYNSYM; },
       "corrupt: section '.rela.rodata' refers to symbols of section 4, which is not the symbol table"}};
  for (const auto& [change, text] : refusals) CHECK(refusal_of_file(change) == text);
}

TEST_CASE("relocatable: relocations by their names and their bytes") {
  const std::pair<const char*, std::uint32_t> known[] = {{"relocation 0 (R_AMDGPU_NONE)", 0},
                                                         {"relocation 1 (R_AMDGPU_ABS32_LO)", 0},
                                                         {"relocation 2 (R_AMDGPU_ABS32_HI)", 0},
                                                         {"relocation 3 (R_AMDGPU_ABS64)", 8},
                                                         {"relocation 4 (R_AMDGPU_REL32)", 4},
                                                         {"relocation 5 (R_AMDGPU_REL64)", 8},
                                                         {"relocation 6 (R_AMDGPU_ABS32)", 0},
                                                         {"relocation 7 (R_AMDGPU_GOTPCREL)", 0},
                                                         {"relocation 8 (R_AMDGPU_GOTPCREL32_LO)", 0},
                                                         {"relocation 9 (R_AMDGPU_GOTPCREL32_HI)", 0},
                                                         {"relocation 10 (R_AMDGPU_REL32_LO)", 4},
                                                         {"relocation 11 (R_AMDGPU_REL32_HI)", 4},
                                                         {"relocation 12", 0},
                                                         {"relocation 13 (R_AMDGPU_RELATIVE64)", 8},
                                                         {"relocation 14 (R_AMDGPU_REL16)", 0},
                                                         {"relocation 15", 0}};
  std::uint32_t type = 0;
  for (const auto& [name, bytes] : known) {
    CHECK(relocation_name(type) == name);
    CHECK(relocation_bytes(type) == bytes);
    ++type;
  }
}

TEST_CASE("relocatable: s_code_end fills whole dwords, and enlarges the image only as far as it needs") {
  const auto filled = [](std::size_t bytes, std::uint64_t begin, std::uint64_t end) {
    std::vector<std::byte> image(bytes);
    fill_code_end(image, begin, end);
    std::string text;
    for (const std::byte each : image) {
      text += each == std::byte{0x9F} ? '9' : each == std::byte{0xBF} ? 'B' : each == std::byte{0} ? '.' : '?';
    }
    return text;
  };
  CHECK(filled(5, 5, 12) == "..........9B");
  CHECK(filled(5, 5, 9) == "..........9B");
  CHECK(filled(4, 4, 4) == "....");
  CHECK(filled(0, 0, 8) == "..9B..9B");
  CHECK(filled(12, 4, 8) == "......9B....");
}

}  // namespace kiln::amdgpu_pm4
