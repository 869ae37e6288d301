// ElfFile: the parts of a 64-bit little-endian ELF file for AMD GPUs, read without trusting a byte of it.
//
// Thread-safety: pure functions and values. Ownership: everything borrows from the bytes that were given.
// Errors: corrupt where the file contradicts itself or its size, unsupported where it is understood and not served,
// both sides named. The messages do not name the file: the caller does.
#pragma once

#include <kiln/status.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "amdgpu_pm4/code_object/code_object.hpp"

namespace kiln::amdgpu_pm4 {

enum class ElfType : std::uint8_t { invalid = 0, relocatable, linked };  // "clang -c" makes the former

struct ElfSection {
  std::string_view name;
  std::uint32_t type = 0;
  std::uint64_t flags = 0;
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  std::uint64_t alignment = 0;  // a power of two, at least 1
  std::uint64_t entry_size = 0;
  std::uint32_t link = 0, info = 0;
  std::span<const std::byte> contents;  // empty where it has none in the file
};

struct ElfSegment {
  std::uint32_t type = 0;
  std::uint32_t flags = 0;
  std::uint64_t address = 0;
  std::uint64_t memory_bytes = 0;  // not less than its contents
  std::span<const std::byte> contents;
};

struct ElfSymbol {
  std::string_view name;
  std::uint16_t section = 0;  // or a reserved index
  std::uint64_t value = 0;
  std::uint64_t size = 0;
};

struct ElfRelocation {
  std::uint64_t offset = 0;
  std::uint32_t type = 0;
  std::uint32_t symbol = 0;
  std::int64_t addend = 0;
};

struct ElfFile {
  ElfType type = ElfType::invalid;
  std::uint8_t abi_version = 0;
  std::uint32_t flags = 0;
  std::vector<ElfSection> sections;
  std::vector<ElfSegment> segments;
};

inline constexpr std::uint64_t most_image_bytes = std::uint64_t{64} << 20;

Result<ElfFile> read_elf(std::span<const std::byte> file);

// REQUIRES: section is one of file's. The first symbol (index 0) is the empty one of the format.
Result<std::vector<ElfSymbol>> read_symbols(const ElfFile& file, const ElfSection& section);
Result<std::vector<ElfRelocation>> read_relocations(const ElfSection& section);

// An ELF file as it lies in memory: a linked one as it is, a relocatable one laid out and relocated.

// LaidOut: a code object's contents as they shall lie in memory, from a relocatable file or from a linked one.
//
// Thread-safety: pure functions and values. Ownership: the image is owned, names borrow from the file's bytes.
// After every piece of code lie at least 64 dwords of s_code_end: processors fetch instructions ahead of the last one.

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

// The relocations of AMD GPU code: their numbers, names, and the bytes that those applied here write.
//
// Thread-safety: pure functions. Ownership: values.

inline constexpr std::uint32_t relocation_none = 0;
inline constexpr std::uint32_t relocation_abs64 = 3;  // the symbol's address
inline constexpr std::uint32_t relocation_rel32 = 4;  // its distance from the word relocated
inline constexpr std::uint32_t relocation_rel64 = 5;
inline constexpr std::uint32_t relocation_rel32_lo = 10;    // the distance's lower half
inline constexpr std::uint32_t relocation_rel32_hi = 11;    // its upper half
inline constexpr std::uint32_t relocation_relative64 = 13;  // linked files: the addend, from where the file lies

// 0: not applied here.
std::uint32_t relocation_bytes(std::uint32_t type) noexcept;
std::string relocation_name(std::uint32_t type);  // "relocation 7 (R_AMDGPU_GOTPCREL)"

}  // namespace kiln::amdgpu_pm4
