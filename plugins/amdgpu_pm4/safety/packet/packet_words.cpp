#include "amdgpu_pm4/safety/packet/packet_words.hpp"

#include <string>

#include "amdgpu_pm4/packets/command_buffer.hpp"
#include "amdgpu_pm4/safety/range_finder.hpp"

namespace kiln::amdgpu_pm4 {

bool is_address(std::uint64_t address) {
  const std::uint64_t above = address >> 48;
  return above == 0 || address == canonical(address);
}

Status wrong_word(std::size_t dword, std::string_view name, std::uint32_t is, std::string_view expected) {
  return invalid_argument("dword " + std::to_string(dword) + ", " + std::string(name) + " is " + hex_text(is) +
                          ", expected " + std::string(expected));
}

Status check_aligned(std::uint64_t va, std::uint64_t alignment, std::string_view what) {
  if (va % alignment == 0) return {};
  return invalid_argument(std::string(what) + " at " + hex_text(va) + ", expected a multiple of " +
                          std::to_string(alignment));
}

}  // namespace kiln::amdgpu_pm4
