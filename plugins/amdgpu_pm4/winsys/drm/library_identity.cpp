#include "amdgpu_pm4/winsys/drm/library_identity.hpp"

#include <elf.h>
#include <link.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string_view>

namespace kiln::amdgpu_pm4 {
namespace {

struct Search {
  std::uintptr_t wanted = 0;
  std::string found;
};

constexpr std::size_t padded(std::size_t bytes) { return (bytes + 3) / 4 * 4; }

// The build-id among the notes of one loaded segment; empty: none.
std::string build_id_in(const std::byte* notes, std::size_t bytes) {
  ElfW(Nhdr) note;
  while (bytes >= sizeof note) {
    std::memcpy(&note, notes, sizeof note);
    const std::size_t name = padded(note.n_namesz), content = padded(note.n_descsz);
    if (name > bytes - sizeof note || content > bytes - sizeof note - name) return {};
    const std::byte* const text = notes + sizeof note;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(text, "GNU", 4) == 0) {
      std::string hex;
      for (std::size_t i = 0; i < note.n_descsz; ++i) {
        char digits[3];
        std::snprintf(digits, sizeof digits, "%02x", std::to_integer<unsigned>(text[name + i]));
        hex += digits;
      }
      return hex;
    }
    notes += sizeof note + name + content;
    bytes -= sizeof note + name + content;
  }
  return {};
}

int look_at(dl_phdr_info* info, std::size_t, void* into) {
  auto& search = *static_cast<Search*>(into);
  bool holds = false;
  std::string build_id;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    const std::uintptr_t begin = info->dlpi_addr + header.p_vaddr;
    if (header.p_type == PT_LOAD) holds |= search.wanted - begin < header.p_memsz;
    if (header.p_type == PT_NOTE && build_id.empty()) {
      build_id = build_id_in(reinterpret_cast<const std::byte*>(begin), header.p_memsz);
    }
  }
  if (!holds) return 0;
  const std::string_view path = info->dlpi_name;
  search.found = path.substr(path.rfind('/') + 1);
  if (!build_id.empty()) search.found += " build-id " + build_id;
  return 1;
}

}  // namespace

std::string library_identity(const void* function) {
  Search search;
  search.wanted = reinterpret_cast<std::uintptr_t>(function);
  dl_iterate_phdr(&look_at, &search);
  return search.found.empty() ? "unknown" : search.found;
}

}  // namespace kiln::amdgpu_pm4
