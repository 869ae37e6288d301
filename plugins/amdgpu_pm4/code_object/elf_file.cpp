#include "amdgpu_pm4/code_object/elf_file.hpp"

#include <elf.h>

#include <bit>
#include <cstring>
#include <string>
#include <type_traits>

namespace kiln::amdgpu_pm4 {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::uint16_t machine_amdgpu = 224;
constexpr std::uint8_t os_abi_hsa = 64;

// More than any compiler writes; bounds the work on hostile files.
constexpr std::uint64_t most_sections = 4096;
constexpr std::uint64_t most_segments = 64;
constexpr std::uint64_t most_symbols = 1 << 16;
constexpr std::uint64_t most_relocations = 1 << 20;
constexpr std::uint64_t most_alignment = 4096;

// Whether `count` records of `size` bytes lie within the bytes.
bool holds(Bytes bytes, std::uint64_t offset, std::uint64_t count, std::uint64_t size) {
  return offset <= bytes.size() && count <= (bytes.size() - offset) / size;
}

template <class Record>
Record record_at(Bytes bytes, std::uint64_t offset) {  // REQUIRES: it lies within
  static_assert(std::is_trivially_copyable_v<Record>);
  Record record;
  std::memcpy(&record, bytes.data() + offset, sizeof record);
  return record;
}

std::string number(std::uint64_t value) { return std::to_string(value); }

Status check_header(const Elf64_Ehdr& header) {
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return corrupt("the code object is not an ELF file");
  if (header.e_ident[EI_CLASS] != ELFCLASS64) {
    return unsupported("ELF class " + number(header.e_ident[EI_CLASS]) + ", expected 2 (64-bit)");
  }
  if (header.e_ident[EI_DATA] != ELFDATA2LSB) {
    return unsupported("ELF byte order " + number(header.e_ident[EI_DATA]) + ", expected 1 (little-endian)");
  }
  for (const std::uint32_t version : {std::uint32_t{header.e_ident[EI_VERSION]}, header.e_version}) {
    if (version != EV_CURRENT) return unsupported("ELF version " + number(version) + ", expected 1");
  }
  if (header.e_machine != machine_amdgpu) {
    return unsupported("ELF machine " + number(header.e_machine) + ", expected 224 (AMD GPU)");
  }
  if (header.e_ident[EI_OSABI] != os_abi_hsa) {
    return unsupported("ELF OS ABI " + number(header.e_ident[EI_OSABI]) + ", expected 64 (HSA)");
  }
  if (header.e_type != ET_REL && header.e_type != ET_DYN) {
    return unsupported("ELF type " + number(header.e_type) + ", expected 1 (relocatable) or 3 (shared object)");
  }
  if (header.e_ehsize != sizeof header) {
    return corrupt("ELF header has " + number(header.e_ehsize) + " bytes, expected " + number(sizeof header));
  }
  return {};
}

// The text that starts at the offset and ends before the next NUL.
Result<std::string_view> text_at(Bytes strings, std::uint64_t offset, std::string_view what) {
  if (offset >= strings.size()) {
    return corrupt(std::string(what) + " name at offset " + number(offset) + " is outside the string table of " +
                   number(strings.size()) + " bytes");
  }
  const auto* const start = reinterpret_cast<const char*>(strings.data() + offset);
  const void* const end = std::memchr(start, 0, strings.size() - offset);
  if (end == nullptr) return corrupt(std::string(what) + " name has no terminating NUL");
  return std::string_view(start, static_cast<std::size_t>(static_cast<const char*>(end) - start));
}

Status read_sections(Bytes file, const Elf64_Ehdr& header, ElfFile& elf) {
  if (header.e_shnum == 0) return {};
  if (header.e_shentsize != sizeof(Elf64_Shdr)) {
    return corrupt("section header size is " + number(header.e_shentsize) + " bytes, expected " +
                   number(sizeof(Elf64_Shdr)));
  }
  if (header.e_shnum > most_sections) {
    return corrupt(number(header.e_shnum) + " sections, expected at most " + number(most_sections));
  }
  if (!holds(file, header.e_shoff, header.e_shnum, sizeof(Elf64_Shdr))) {
    return corrupt(number(header.e_shnum) + " section headers reach beyond the end of the file");
  }
  std::vector<std::uint32_t> names;
  for (std::uint64_t i = 0; i < header.e_shnum; ++i) {
    const auto raw = record_at<Elf64_Shdr>(file, header.e_shoff + i * sizeof(Elf64_Shdr));
    ElfSection section;
    section.type = raw.sh_type, section.flags = raw.sh_flags, section.address = raw.sh_addr;
    section.size = raw.sh_size, section.entry_size = raw.sh_entsize;
    section.link = raw.sh_link, section.info = raw.sh_info;
    section.alignment = raw.sh_addralign == 0 ? 1 : raw.sh_addralign;
    if (raw.sh_type != SHT_NULL && raw.sh_type != SHT_NOBITS) {
      if (!holds(file, raw.sh_offset, raw.sh_size, 1)) {
        return corrupt("section " + number(i) + " reaches beyond the end of the file");
      }
      section.contents = file.subspan(raw.sh_offset, raw.sh_size);
    }
    if (!std::has_single_bit(section.alignment) || section.alignment > most_alignment) {
      return corrupt("section " + number(i) + " is aligned to " + number(section.alignment) +
                     " bytes, expected a power of two up to " + number(most_alignment));
    }
    elf.sections.push_back(section);
    names.push_back(raw.sh_name);
  }
  if (header.e_shstrndx == SHN_UNDEF) return {};
  if (header.e_shstrndx >= elf.sections.size()) {
    return corrupt("section name table has index " + number(header.e_shstrndx) + ", expected less than " +
                   number(elf.sections.size()));
  }
  const Bytes strings = elf.sections[header.e_shstrndx].contents;
  for (std::size_t i = 1; i < elf.sections.size(); ++i) {
    const auto name = text_at(strings, names[i], "section");
    if (!name) return name.error();
    elf.sections[i].name = *name;
  }
  return {};
}

Status read_segments(Bytes file, const Elf64_Ehdr& header, ElfFile& elf) {
  if (header.e_phnum == 0) return {};
  if (header.e_phentsize != sizeof(Elf64_Phdr)) {
    return corrupt("program header size is " + number(header.e_phentsize) + " bytes, expected " +
                   number(sizeof(Elf64_Phdr)));
  }
  if (header.e_phnum > most_segments) {
    return corrupt(number(header.e_phnum) + " segments, expected at most " + number(most_segments));
  }
  if (!holds(file, header.e_phoff, header.e_phnum, sizeof(Elf64_Phdr))) {
    return corrupt(number(header.e_phnum) + " program headers reach beyond the end of the file");
  }
  for (std::uint64_t i = 0; i < header.e_phnum; ++i) {
    const auto raw = record_at<Elf64_Phdr>(file, header.e_phoff + i * sizeof(Elf64_Phdr));
    if (!holds(file, raw.p_offset, raw.p_filesz, 1)) {
      return corrupt("segment " + number(i) + " reaches beyond the end of the file");
    }
    if (raw.p_type == PT_LOAD && raw.p_memsz < raw.p_filesz) {
      return corrupt("segment " + number(i) + " has " + number(raw.p_filesz) + " bytes in the file, expected at most " +
                     number(raw.p_memsz) + " (its memory size)");
    }
    elf.segments.push_back(
        {raw.p_type, raw.p_flags, raw.p_vaddr, raw.p_memsz, file.subspan(raw.p_offset, raw.p_filesz)});
  }
  return {};
}

Status check_table(const ElfSection& section, std::uint64_t record, std::uint64_t most, std::string_view what) {
  if (section.entry_size != record || section.contents.size() % record != 0) {
    return corrupt("section '" + std::string(section.name) + "' has " + number(section.contents.size()) +
                   " bytes in entries of " + number(section.entry_size) + ", expected whole entries of " +
                   number(record));
  }
  const std::uint64_t count = section.contents.size() / record;
  if (count > most) return corrupt(number(count) + " " + std::string(what) + ", expected at most " + number(most));
  return {};
}

}  // namespace

Result<ElfFile> read_elf(std::span<const std::byte> file) {
  if (file.size() < sizeof(Elf64_Ehdr)) {
    return corrupt("the code object has " + number(file.size()) + " bytes, expected at least " +
                   number(sizeof(Elf64_Ehdr)) + " for the ELF header");
  }
  const auto header = record_at<Elf64_Ehdr>(file, 0);
  if (Status status = check_header(header); !status.ok()) return status;
  ElfFile elf;
  elf.type = header.e_type == ET_REL ? ElfType::relocatable : ElfType::linked;
  elf.abi_version = header.e_ident[EI_ABIVERSION];
  elf.flags = header.e_flags;
  if (Status status = read_sections(file, header, elf); !status.ok()) return status;
  if (Status status = read_segments(file, header, elf); !status.ok()) return status;
  return elf;
}

Result<std::vector<ElfSymbol>> read_symbols(const ElfFile& file, const ElfSection& section) {
  if (Status status = check_table(section, sizeof(Elf64_Sym), most_symbols, "symbols"); !status.ok()) return status;
  if (section.link >= file.sections.size()) {
    return corrupt("section '" + std::string(section.name) + "' has its names in section " + number(section.link) +
                   ", expected a number less than " + number(file.sections.size()));
  }
  const Bytes strings = file.sections[section.link].contents;
  std::vector<ElfSymbol> symbols;
  for (std::uint64_t at = 0; at < section.contents.size(); at += sizeof(Elf64_Sym)) {
    const auto raw = record_at<Elf64_Sym>(section.contents, at);
    const auto name = text_at(strings, raw.st_name, "symbol");
    if (!name) return name.error();
    symbols.push_back({*name, raw.st_shndx, raw.st_value, raw.st_size});
  }
  return symbols;
}

Result<std::vector<ElfRelocation>> read_relocations(const ElfSection& section) {
  if (Status status = check_table(section, sizeof(Elf64_Rela), most_relocations, "relocations"); !status.ok()) {
    return status;
  }
  std::vector<ElfRelocation> relocations;
  for (std::uint64_t at = 0; at < section.contents.size(); at += sizeof(Elf64_Rela)) {
    const auto raw = record_at<Elf64_Rela>(section.contents, at);
    relocations.push_back({raw.r_offset, static_cast<std::uint32_t>(ELF64_R_TYPE(raw.r_info)),
                           static_cast<std::uint32_t>(ELF64_R_SYM(raw.r_info)), raw.r_addend});
  }
  return relocations;
}

}  // namespace kiln::amdgpu_pm4
