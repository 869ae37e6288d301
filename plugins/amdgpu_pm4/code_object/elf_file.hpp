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
#include <string_view>
#include <vector>

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

// The first note of this owner and type in the bytes of a note section or segment; empty: there is none.
Result<std::span<const std::byte>> find_note(std::span<const std::byte> notes, std::string_view owner,
                                             std::uint32_t type);

}  // namespace kiln::amdgpu_pm4
