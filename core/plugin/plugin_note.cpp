#include "plugin/plugin_note.hpp"

#include <elf.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <type_traits>

namespace kiln {
namespace {

constexpr std::string_view note_owner = "Kiln";
constexpr std::uint32_t note_type = 1;

template <std::size_t size>
std::string text_of(const char (&field)[size]) {
  return {field, std::find(field, field + size, '\0')};
}

template <std::size_t size>
Status check_text(std::string_view what, const char (&field)[size]) {
  const char* end = std::find(field, field + size, '\0');
  if (end == field + size) return corrupt("Kiln note has a " + std::string(what) + " without a NUL at the end");
  for (const char* at = field; at != end; ++at) {
    if (*at < ' ' || *at > '~') return corrupt("Kiln note has a " + std::string(what) + " that is not printable ASCII");
  }
  return {};
}

Status difference(std::string_view field, const std::string& in_file, const std::string& in_memory) {
  if (in_file == in_memory) return {};
  return corrupt("Kiln note and exported object differ in " + std::string(field) + ": '" + in_file +
                 "' in the file, '" + in_memory + "' in memory");
}

}  // namespace

Result<PluginNote> parse_plugin_note(std::span<const std::byte> file) {
  auto notes = read_elf_notes(file);
  if (!notes) return std::move(notes).error();
  const auto ours = [](const ElfNote& note) { return note.owner == note_owner && note.type == note_type; };
  const auto count = std::ranges::count_if(*notes, ours);
  if (count == 0) return corrupt("not a Kiln plugin: found no Kiln note");
  if (count > 1) return corrupt("found " + std::to_string(count) + " Kiln notes, expected 1");
  const std::span<const std::byte> contents = std::ranges::find_if(*notes, ours)->contents;

  PluginNote note{};
  if (contents.size() >= sizeof note.abi) {
    std::memcpy(&note.abi, contents.data(), sizeof note.abi);
    if (note.abi != plugin_abi) return note;
  }
  if (contents.size() != sizeof note) {
    return corrupt("Kiln note has " + std::to_string(contents.size()) + " bytes, expected " +
                   std::to_string(sizeof note));
  }
  std::memcpy(&note, contents.data(), sizeof note);
  for (Status status : {check_text("fingerprint", note.fingerprint), check_text("name", note.name),
                        check_text("version", note.version)}) {
    if (!status.ok()) return status;
  }
  return note;
}

Status check_note(const PluginNote& note, std::string_view file_name) {
  if (note.abi != plugin_abi) {
    return unsupported("built for plugin ABI " + std::to_string(note.abi) + ", expected " + std::to_string(plugin_abi) +
                       (note.abi < plugin_abi ? ". Rebuild the plugin" : ". Install a newer Kiln"));
  }
  if (text_of(note.fingerprint) != build_fingerprint) {
    return unsupported("build fingerprint '" + text_of(note.fingerprint) + "', expected '" + build_fingerprint +
                       "' as of this Kiln");
  }
  if (text_of(note.name) != file_name) {
    return invalid_argument("name in the Kiln note is '" + text_of(note.name) + "', expected '" +
                            std::string(file_name) + "' as in the file name");
  }
  return {};
}

Status compare_notes(const PluginNote& in_file, const PluginNote& in_memory) {
  for (Status status : {difference("abi", std::to_string(in_file.abi), std::to_string(in_memory.abi)),
                        difference("fingerprint", text_of(in_file.fingerprint), text_of(in_memory.fingerprint)),
                        difference("name", text_of(in_file.name), text_of(in_memory.name)),
                        difference("version", text_of(in_file.version), text_of(in_memory.version))}) {
    if (!status.ok()) return status;
  }
  return {};
}

namespace {

using Bytes = std::span<const std::byte>;

constexpr bool wide = sizeof(void*) == 8;
using Header = std::conditional_t<wide, Elf64_Ehdr, Elf32_Ehdr>;
using Segment = std::conditional_t<wide, Elf64_Phdr, Elf32_Phdr>;
using Section = std::conditional_t<wide, Elf64_Shdr, Elf32_Shdr>;

constexpr unsigned char host_class = wide ? ELFCLASS64 : ELFCLASS32;
constexpr unsigned char host_order = std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;
#if defined(__x86_64__)
constexpr std::uint16_t host_machine = EM_X86_64;
#elif defined(__aarch64__)
constexpr std::uint16_t host_machine = EM_AARCH64;
#elif defined(__riscv)
constexpr std::uint16_t host_machine = EM_RISCV;
#elif defined(__powerpc64__)
constexpr std::uint16_t host_machine = EM_PPC64;
#elif defined(__i386__)
constexpr std::uint16_t host_machine = EM_386;
#else
#error "name this machine's ELF number here"
#endif

// More than any linker writes; bounds the work on hostile files.
constexpr std::size_t most_segments = 128;
constexpr std::size_t most_sections = 4096;
constexpr std::uint64_t most_note_bytes = 64 << 10;

std::string machine_name(std::uint16_t machine) {
  switch (machine) {
    case EM_386:
      return "x86";
    case EM_ARM:
      return "ARM";
    case EM_X86_64:
      return "x86-64";
    case EM_AARCH64:
      return "AArch64";
    case EM_RISCV:
      return "RISC-V";
    case EM_PPC64:
      return "PowerPC64";
    case EM_S390:
      return "S/390";
    case EM_LOONGARCH:
      return "LoongArch";
    default:
      return "machine " + std::to_string(machine);
  }
}

std::string class_name(unsigned char elf_class) {
  if (elf_class == ELFCLASS32) return "32-bit";
  if (elf_class == ELFCLASS64) return "64-bit";
  return "ELF class " + std::to_string(elf_class);
}

std::string order_name(unsigned char order) {
  if (order == ELFDATA2LSB) return "little-endian";
  if (order == ELFDATA2MSB) return "big-endian";
  return "byte order " + std::to_string(order);
}

std::string type_name(std::uint16_t type) {
  switch (type) {
    case ET_REL:
      return "an object file";
    case ET_EXEC:
      return "an executable";
    case ET_CORE:
      return "a core dump";
    default:
      return "ELF type " + std::to_string(type);
  }
}

Status truncated(Bytes file, std::string_view what, std::uint64_t offset, std::uint64_t bytes) {
  return corrupt("truncated: file has " + std::to_string(file.size()) + " bytes, expected " + std::string(what) +
                 " of " + std::to_string(bytes) + " bytes at offset " + std::to_string(offset));
}

bool inside(Bytes file, std::uint64_t offset, std::uint64_t bytes) noexcept {
  return offset <= file.size() && bytes <= file.size() - offset;
}

// REQUIRES: inside(file, offset, sizeof(T)).
template <class T>
T read(Bytes file, std::uint64_t offset) noexcept {
  T value;
  std::memcpy(&value, file.data() + offset, sizeof value);
  return value;
}

Result<Header> read_header(Bytes file) {
  if (file.size() < SELFMAG || std::memcmp(file.data(), ELFMAG, SELFMAG) != 0) {
    return corrupt("not an ELF file: " + std::to_string(file.size()) + " bytes that do not begin with \"\\x7fELF\"");
  }
  if (!inside(file, 0, sizeof(Header))) return truncated(file, "ELF header", 0, sizeof(Header));
  const auto header = read<Header>(file, 0);
  if (header.e_ident[EI_CLASS] != host_class) {
    return unsupported("built for " + class_name(header.e_ident[EI_CLASS]) + ", expected " + class_name(host_class));
  }
  if (header.e_ident[EI_DATA] != host_order) {
    return unsupported("built for " + order_name(header.e_ident[EI_DATA]) + ", expected " + order_name(host_order));
  }
  if (header.e_machine != host_machine) {
    return unsupported("built for " + machine_name(header.e_machine) + ", expected " + machine_name(host_machine));
  }
  if (header.e_type != ET_DYN) return unsupported(type_name(header.e_type) + ", expected a shared library");
  return header;
}

Result<std::vector<Segment>> read_segments(Bytes file, const Header& header) {
  if (header.e_phnum == 0 || header.e_phnum > most_segments || header.e_phentsize != sizeof(Segment)) {
    return corrupt("inconsistent: " + std::to_string(header.e_phnum) + " program headers of " +
                   std::to_string(header.e_phentsize) + " bytes, expected 1 to " + std::to_string(most_segments) +
                   " of " + std::to_string(sizeof(Segment)) + " bytes");
  }
  const std::uint64_t table_bytes = std::uint64_t{header.e_phnum} * sizeof(Segment);
  if (!inside(file, header.e_phoff, table_bytes))
    return truncated(file, "program header table", header.e_phoff, table_bytes);
  std::vector<Segment> segments;
  for (std::size_t i = 0; i < header.e_phnum; ++i) {
    segments.push_back(read<Segment>(file, header.e_phoff + i * sizeof(Segment)));
    const Segment& segment = segments.back();
    if (!inside(file, segment.p_offset, segment.p_filesz)) {
      return truncated(file, "segment " + std::to_string(i), segment.p_offset, segment.p_filesz);
    }
  }
  return segments;
}

// The section table lies at a file's end as a rule, so it shows a copy that stopped early. A stripped one may be
// absent.
Status check_sections(Bytes file, const Header& header) {
  if (header.e_shoff == 0 || header.e_shnum == 0) return {};
  if (header.e_shnum > most_sections || header.e_shentsize != sizeof(Section)) {
    return corrupt("inconsistent: " + std::to_string(header.e_shnum) + " section headers of " +
                   std::to_string(header.e_shentsize) + " bytes, expected at most " + std::to_string(most_sections) +
                   " of " + std::to_string(sizeof(Section)) + " bytes");
  }
  const std::uint64_t table_bytes = std::uint64_t{header.e_shnum} * sizeof(Section);
  if (!inside(file, header.e_shoff, table_bytes))
    return truncated(file, "section header table", header.e_shoff, table_bytes);
  for (std::size_t i = 0; i < header.e_shnum; ++i) {
    const auto section = read<Section>(file, header.e_shoff + i * sizeof(Section));
    if (section.sh_type == SHT_NOBITS || section.sh_type == SHT_NULL) continue;
    if (!inside(file, section.sh_offset, section.sh_size)) {
      return truncated(file, "section " + std::to_string(i), section.sh_offset, section.sh_size);
    }
  }
  return {};
}

}  // namespace

Result<std::vector<ElfNote>> read_elf_notes(Bytes file) {
  auto header = read_header(file);
  if (!header) return std::move(header).error();
  auto segments = read_segments(file, *header);
  if (!segments) return std::move(segments).error();
  if (Status status = check_sections(file, *header); !status.ok()) return status;
  std::vector<ElfNote> notes;
  for (const Segment& segment : *segments) {
    if (segment.p_type != PT_NOTE) continue;
    if (segment.p_filesz > most_note_bytes) {
      return corrupt("inconsistent: note segment has " + std::to_string(segment.p_filesz) +
                     " bytes, expected at most " + std::to_string(most_note_bytes));
    }
    const auto read = read_notes(file.subspan(segment.p_offset, segment.p_filesz), segment.p_align);
    if (!read) return read.error();
    notes.insert(notes.end(), read->begin(), read->end());
  }
  return notes;
}

}  // namespace kiln
