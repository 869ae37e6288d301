// The limits on what a code object may hold: the last number that is read, and the first that is refused.

#include <elf.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "amdgpu_pm4/code_object/elf_file.hpp"
#include "amdgpu_pm4/code_object/metadata.hpp"
#include "kiln_json.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

ElfSection table_of(std::span<const std::byte> contents, std::uint64_t record) {
  ElfSection section;
  section.name = ".table";
  section.entry_size = record;
  section.contents = contents;
  return section;
}

Json kernel() {
  return {{".name", "k"},
          {".symbol", "k.kd"},
          {".group_segment_fixed_size", 0},
          {".private_segment_fixed_size", 0},
          {".kernarg_segment_size", 65536},
          {".kernarg_segment_align", 8},
          {".wavefront_size", 32},
          {".sgpr_count", 8},
          {".vgpr_count", 8},
          {".max_flat_workgroup_size", 1024}};
}

Json with(const char* key, std::uint64_t value) {
  Json changed = kernel();
  changed[key] = value;
  return changed;
}

Json with_arguments(std::size_t count) {
  Json changed = kernel();
  changed[".args"] = Json::array();
  for (std::size_t i = 0; i < count; ++i) {
    changed[".args"].push_back({{".offset", 4 * i}, {".size", 4}, {".value_kind", "by_value"}});
  }
  return changed;
}

Result<ObjectMetadata> read(const std::vector<Json>& kernels) {
  const std::vector<std::uint8_t> note = Json::to_msgpack(
      {{"amdhsa.version", {1, 2}}, {"amdhsa.target", "amdgcn-amd-amdhsa--gfx1100"}, {"amdhsa.kernels", kernels}});
  return read_metadata(std::as_bytes(std::span(note)));
}

std::string refusal_of_kernels(const std::vector<Json>& kernels) {
  const auto object = read(kernels);
  REQUIRE_FALSE(object);
  return object.error().text();
}

}  // namespace

TEST_CASE("code_object limits: symbols and relocations") {
  constexpr std::size_t symbols = 65536, relocations = 1048576;
  const std::vector<std::byte> bytes(sizeof(Elf64_Rela) * (relocations + 1));
  ElfFile file;
  ElfSection names;
  names.contents = std::span(bytes).first(1);
  file.sections = {names};
  const auto symbols_of = [&](std::size_t count) {
    return read_symbols(file, table_of(std::span(bytes).first(count * sizeof(Elf64_Sym)), sizeof(Elf64_Sym)));
  };
  REQUIRE(symbols_of(symbols));
  CHECK(symbols_of(symbols)->size() == symbols);
  REQUIRE_FALSE(symbols_of(symbols + 1));
  CHECK(symbols_of(symbols + 1).error().text() == "corrupt: 65537 symbols, expected at most 65536");
  const auto relocations_of = [&](std::size_t count) {
    return read_relocations(table_of(std::span(bytes).first(count * sizeof(Elf64_Rela)), sizeof(Elf64_Rela)));
  };
  REQUIRE(relocations_of(relocations));
  CHECK(relocations_of(relocations)->size() == relocations);
  REQUIRE_FALSE(relocations_of(relocations + 1));
  CHECK(relocations_of(relocations + 1).error().text() == "corrupt: 1048577 relocations, expected at most 1048576");
}

TEST_CASE("code_object limits: the image, with what lies behind code") {
  const auto laid_out = [](std::uint32_t type, std::uint64_t bytes) {
    ElfFile file;
    file.type = ElfType::relocatable;
    file.sections.resize(2);
    ElfSection& section = file.sections[1];
    section.name = ".text";
    section.type = type;
    section.flags = SHF_ALLOC | SHF_EXECINSTR;
    section.alignment = 1;
    section.size = bytes;
    const auto laid = lay_out_relocatable(file);
    return laid ? std::to_string(laid->image.size()) : laid.error().text();
  };
  constexpr std::uint64_t most = most_image_bytes - code_end_bytes - 3;
  CHECK(laid_out(SHT_PROGBITS, most) == std::to_string(most_image_bytes));
  for (const std::uint64_t bytes : {most + 1, most_image_bytes, most_image_bytes + 1, ~std::uint64_t{0}}) {
    CHECK(laid_out(SHT_PROGBITS, bytes) == "unsupported: section '.text' makes the image larger than 67108864 bytes");
  }
  CHECK(laid_out(SHT_NOBITS, 4) == "corrupt: section '.text' is code without contents");
}

TEST_CASE("code_object limits: size of an image with consecutive sections") {
  const auto laid_out = [](std::uint64_t alignment, std::uint64_t bytes) {
    ElfFile file;
    file.type = ElfType::relocatable;
    file.sections.resize(3);
    ElfSection& code = file.sections[1];
    code.name = ".text";
    code.type = SHT_PROGBITS;
    code.flags = SHF_ALLOC | SHF_EXECINSTR;
    code.alignment = 1;
    code.size = 4;
    ElfSection& constants = file.sections[2];
    constants.name = ".rodata";
    constants.type = SHT_PROGBITS;
    constants.flags = SHF_ALLOC;
    constants.alignment = alignment;
    constants.size = bytes;
    const auto laid = lay_out_relocatable(file);
    return laid ? std::to_string(laid->image.size()) : laid.error().text();
  };
  constexpr std::uint64_t image = 67108864;
  // The alignment, and where what has it begins.
  const std::pair<std::uint64_t, std::uint64_t> places[] = {{1, 4 + 256}, {1024, 1024}};
  for (const auto& [alignment, begin] : places) {
    CAPTURE(begin);
    CHECK(laid_out(alignment, 100) == std::to_string(begin + 100));
    CHECK(laid_out(alignment, image - begin) == "67108864");
    for (const std::uint64_t bytes : {image - begin + 1, image, image + 1, ~std::uint64_t{0}}) {
      CHECK(laid_out(alignment, bytes) == "unsupported: section '.rodata' makes the image larger than 67108864 bytes");
    }
  }
}

TEST_CASE("code_object limits: kernels and their arguments") {
  const auto most = read({with_arguments(1024)});
  REQUIRE(most);
  CHECK(most->kernels[0].arguments.size() == 1024);
  CHECK(refusal_of_kernels({with_arguments(1025)}) == "corrupt: metadata: kernel 'k': .args has 1025 entries");
  const auto many = read(std::vector<Json>(4096, kernel()));
  REQUIRE(many);
  CHECK(many->kernels.size() == 4096);
  CHECK(refusal_of_kernels(std::vector<Json>(4097, kernel())) == "corrupt: metadata: amdhsa.kernels has 4097 entries");
  REQUIRE(read({}));
  CHECK(read({})->kernels.empty());
}

TEST_CASE("code_object limits: numbers of a kernel") {
  const std::pair<const char*, std::uint64_t> limits[] = {{".kernarg_segment_size", 65536},
                                                          {".wavefront_size", 64},
                                                          {".sgpr_count", 512},
                                                          {".vgpr_count", 512},
                                                          {".max_flat_workgroup_size", 1024}};
  for (const auto& [key, most] : limits) {
    INFO(key);
    CHECK(read({with(key, most)}));
    CHECK_THAT(refusal_of_kernels({with(key, most + 1)}),
               Catch::Contains(key) && Catch::Contains(std::to_string(most + 1)));
  }
  CHECK(refusal_of_kernels({with(".max_flat_workgroup_size", 0)}) ==
        "corrupt: metadata: kernel 'k': .max_flat_workgroup_size is 0");
}

}  // namespace kiln::amdgpu_pm4
