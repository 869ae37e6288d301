#include <kiln/elf_notes.hpp>

#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstring>

namespace kiln {
namespace {

LoadedLibrary library_of(const dl_phdr_info& loaded) {
  LoadedLibrary library{loaded.dlpi_name, {}};
  for (int i = 0; i < loaded.dlpi_phnum && library.build_id.empty(); ++i) {
    const ElfW(Phdr)& segment = loaded.dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const auto* const begin = reinterpret_cast<const std::byte*>(loaded.dlpi_addr + segment.p_vaddr);
    for (const std::byte each : find_build_id({begin, segment.p_memsz})) {
      constexpr std::string_view digits = "0123456789abcdef";
      library.build_id += digits[std::to_integer<unsigned>(each) >> 4];
      library.build_id += digits[std::to_integer<unsigned>(each) & 15];
    }
  }
  return library;
}

bool holds(const dl_phdr_info& loaded, const void* address) {
  return std::any_of(loaded.dlpi_phdr, loaded.dlpi_phdr + loaded.dlpi_phnum, [&](const ElfW(Phdr) & segment) {
    const std::uintptr_t begin = loaded.dlpi_addr + segment.p_vaddr;
    return segment.p_type == PT_LOAD && reinterpret_cast<std::uintptr_t>(address) - begin < segment.p_memsz;
  });
}

}  // namespace

Result<std::vector<ElfNote>> read_notes(std::span<const std::byte> segment, std::uint64_t alignment) {
  const std::uint64_t unit = alignment == 8 ? 8 : 4;
  const auto padded = [unit](std::uint64_t bytes) { return (bytes + unit - 1) / unit * unit; };
  const auto inside = [&](std::uint64_t at, std::uint64_t bytes) {
    return at <= segment.size() && bytes <= segment.size() - at;
  };
  std::vector<ElfNote> notes;
  std::uint64_t at = 0;
  while (inside(at, sizeof(Elf64_Nhdr))) {  // one layout for both classes
    Elf64_Nhdr header;
    std::memcpy(&header, segment.data() + at, sizeof header);
    const std::uint64_t owner_at = at + sizeof header;
    const std::uint64_t contents_at = padded(owner_at + header.n_namesz);
    if (!inside(owner_at, header.n_namesz) || !inside(contents_at, header.n_descsz)) {
      return corrupt("inconsistent: note of " + std::to_string(header.n_descsz) + " bytes exceeds the segment of " +
                     std::to_string(segment.size()) + " bytes");
    }
    std::string_view owner(reinterpret_cast<const char*>(segment.data() + owner_at), header.n_namesz);
    if (owner.ends_with('\0')) owner.remove_suffix(1);
    notes.push_back({owner, header.n_type, segment.subspan(contents_at, header.n_descsz)});
    at = padded(contents_at + header.n_descsz);
  }
  return notes;
}

std::span<const std::byte> find_build_id(std::span<const std::byte> segment) {
  const auto notes = read_notes(segment);
  if (!notes) return {};
  const auto found = std::find_if(notes->begin(), notes->end(), [](const ElfNote& note) {
    return note.owner == "GNU" && note.type == NT_GNU_BUILD_ID;
  });
  return found == notes->end() ? std::span<const std::byte>{} : found->contents;
}

std::vector<LoadedLibrary> loaded_libraries() {
  std::vector<LoadedLibrary> libraries;
  const auto visit = [](dl_phdr_info* loaded, std::size_t, void* list) {
    static_cast<std::vector<LoadedLibrary>*>(list)->push_back(library_of(*loaded));
    return 0;
  };
  dl_iterate_phdr(visit, &libraries);
  return libraries;
}

std::optional<LoadedLibrary> library_holding(const void* address) {
  struct Search {
    const void* wanted;
    std::optional<LoadedLibrary> found;
  } search{address, {}};
  const auto visit = [](dl_phdr_info* loaded, std::size_t, void* into) {
    auto& at = *static_cast<Search*>(into);
    if (!holds(*loaded, at.wanted)) return 0;
    at.found = library_of(*loaded);
    return 1;
  };
  dl_iterate_phdr(visit, &search);
  return std::move(search.found);
}

}  // namespace kiln
