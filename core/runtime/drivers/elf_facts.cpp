#include "runtime/drivers/elf_facts.hpp"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>
#include <kiln/buffer.hpp>

#include <cstring>
#include <span>

namespace kiln {
namespace {

constexpr std::uint64_t most_headers = 64;
constexpr std::uint64_t most_note_bytes = 4096;
constexpr std::uint64_t most_dynamic_bytes = 64 << 10;
constexpr std::uint64_t most_string_bytes = 4 << 20;

bool read_at(int fd, std::uint64_t offset, void* to, std::size_t bytes) noexcept {
  return pread(fd, to, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
}

// The descriptor of the GNU build-id among the notes; empty where it is not there.
std::string find_build_id(std::string_view notes) {
  const auto padded = [](std::uint64_t bytes) { return (bytes + 3) & ~std::uint64_t{3}; };
  while (notes.size() >= sizeof(Elf64_Nhdr)) {
    Elf64_Nhdr note;
    std::memcpy(&note, notes.data(), sizeof note);
    const std::uint64_t owner = sizeof note;
    const std::uint64_t descriptor = owner + padded(note.n_namesz);
    const std::uint64_t end = descriptor + padded(note.n_descsz);
    if (end > notes.size()) break;
    if (note.n_type == NT_GNU_BUILD_ID && notes.substr(owner, note.n_namesz) == std::string_view("GNU", 4)) {
      return std::string(notes.substr(descriptor, note.n_descsz));
    }
    notes.remove_prefix(end);
  }
  return {};
}

// Where an address of the dynamic section lies in the file.
std::optional<std::uint64_t> offset_of(std::span<const Elf64_Phdr> headers, std::uint64_t address) noexcept {
  for (const Elf64_Phdr& header : headers) {
    if (header.p_type == PT_LOAD && address >= header.p_vaddr && address - header.p_vaddr < header.p_filesz) {
      return header.p_offset + (address - header.p_vaddr);
    }
  }
  return std::nullopt;
}

std::vector<std::string> find_needed(int fd, std::span<const Elf64_Phdr> headers, const Elf64_Phdr& dynamic) {
  if (dynamic.p_filesz > most_dynamic_bytes) return {};
  std::vector<Elf64_Dyn> entries(dynamic.p_filesz / sizeof(Elf64_Dyn));
  if (!read_at(fd, dynamic.p_offset, entries.data(), entries.size() * sizeof(Elf64_Dyn))) return {};
  std::vector<std::uint64_t> names;
  std::uint64_t table = 0;
  std::uint64_t last = 0;  // only the part of the table up to the last name is of interest
  for (const Elf64_Dyn& entry : entries) {
    if (entry.d_tag == DT_STRTAB) table = entry.d_un.d_ptr;
    if (entry.d_tag != DT_NEEDED) continue;
    names.push_back(entry.d_un.d_val);
    last = std::max(last, entry.d_un.d_val);
  }
  const auto offset = offset_of(headers, table);
  if (!offset || names.empty() || last > most_string_bytes) return {};
  std::vector<std::string> needed;
  for (const std::uint64_t at : names) {
    char name[256];  // pread of one name each: the table itself can be a megabyte
    const ssize_t got = pread(fd, name, sizeof name, static_cast<off_t>(*offset + at));
    if (got > 0) needed.emplace_back(name, strnlen(name, static_cast<std::size_t>(got)));
  }
  return needed;
}

}  // namespace

std::optional<ElfFacts> read_elf_facts(const std::filesystem::path& file) {
  const UniqueFd fd(open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd) return std::nullopt;
  Elf64_Ehdr elf;
  if (!read_at(fd.get(), 0, &elf, sizeof elf) || std::memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0 ||
      elf.e_ident[EI_CLASS] != ELFCLASS64 || elf.e_ident[EI_DATA] != ELFDATA2LSB ||
      elf.e_phentsize != sizeof(Elf64_Phdr) || elf.e_phnum == 0 || elf.e_phnum > most_headers) {
    return std::nullopt;
  }
  std::vector<Elf64_Phdr> headers(elf.e_phnum);
  if (!read_at(fd.get(), elf.e_phoff, headers.data(), headers.size() * sizeof(Elf64_Phdr))) return std::nullopt;
  ElfFacts facts;
  for (const Elf64_Phdr& header : headers) {
    if (header.p_type == PT_NOTE && facts.build_id.empty() && header.p_filesz <= most_note_bytes) {
      std::string notes(header.p_filesz, '\0');
      if (read_at(fd.get(), header.p_offset, notes.data(), notes.size())) facts.build_id = find_build_id(notes);
    }
    if (header.p_type == PT_DYNAMIC) facts.needed = find_needed(fd.get(), headers, header);
  }
  return facts;
}

}  // namespace kiln
