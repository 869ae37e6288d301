// LaidOut: a code object's contents as they shall lie in memory, from a relocatable file or from a linked one.
//
// Thread-safety: pure functions and values. Ownership: the image is owned, names borrow from the file's bytes.
// After every piece of code lie at least 64 dwords of s_code_end: processors fetch instructions ahead of the last one.
#pragma once

#include "amdgpu_pm4/code_object/elf/elf_file.hpp"
#include "amdgpu_pm4/code_object/kernel_code.hpp"

namespace kiln::amdgpu_pm4 {

struct PlacedSymbol {
  std::string_view name;
  std::uint64_t offset = 0;  // in the image
  std::uint64_t size = 0;    // ends within the image
};

struct CodeRange {
  std::uint64_t begin = 0, end = 0;  // in the image; the filling after it is not in it
};

struct LaidOut {
  std::vector<std::byte> image;
  std::vector<AddressWord> address_words;
  std::vector<PlacedSymbol> symbols;  // the named ones
  std::vector<CodeRange> code;
};

// Sections are given places, code first, and relocations applied. unsupported: a relocation by its number, an undefined
// symbol by its name, a section that kernels could write by its name.
Result<LaidOut> lay_out_relocatable(const ElfFile& file);

// PT_LOAD segments keep their distances. unsupported: as above, segments that kernels could write among them.
Result<LaidOut> lay_out_linked(const ElfFile& file);

// Fills [begin, end) of the image with s_code_end, as whole dwords from the image's start.
void fill_code_end(std::vector<std::byte>& image, std::uint64_t begin, std::uint64_t end);

inline constexpr std::uint64_t code_end_bytes = 64 * 4;

}  // namespace kiln::amdgpu_pm4
