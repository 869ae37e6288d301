#include "amdgpu_pm4/toolchain/prelude/prelude.hpp"

#include <set>

namespace kiln::amdgpu_pm4 {
namespace {

// One literal: the pieces join where they meet.
constexpr char pieces[] =
#include "amdgpu_pm4/toolchain/prelude/types.inc"

#include "amdgpu_pm4/toolchain/prelude/work_items.inc"

#include "amdgpu_pm4/toolchain/prelude/arithmetic.inc"

#include "amdgpu_pm4/toolchain/prelude/functions.inc"

#include "amdgpu_pm4/toolchain/prelude/integers.inc"

#include "amdgpu_pm4/toolchain/prelude/conversions.inc"

#include "amdgpu_pm4/toolchain/prelude/memory.inc"
    ;

constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
constexpr std::string_view digits = "0123456789";

// The identifier, that without the digits at its end, and each part of it that ends before an underscore.
void add_with_beginnings(std::string_view identifier, std::set<std::string_view>& names) {
  names.insert(identifier);
  if (identifier.ends_with("8") || identifier.ends_with("16")) names.insert("wide");
  const std::size_t last = identifier.find_last_not_of(digits);
  if (last != std::string_view::npos) names.insert(identifier.substr(0, last + 1));
  for (std::size_t at = identifier.find('_'); at != std::string_view::npos; at = identifier.find('_', at + 1)) {
    const std::string_view beginning = identifier.substr(0, at);
    if (!beginning.empty()) names.insert(beginning);
  }
}

}  // namespace

std::string_view prelude() noexcept { return {pieces, sizeof pieces - 1}; }

std::string uses_of(std::string_view text) {
  if (text.find("##") != std::string_view::npos) return "#define KILN_USES(name) 1\n";
  std::set<std::string_view> names;
  std::size_t at = 0;
  while ((at = text.find_first_of(letters, at)) != std::string_view::npos) {
    std::size_t end = at;
    while (end < text.size() && (letters.find(text[end]) != letters.npos || digits.find(text[end]) != digits.npos)) {
      ++end;
    }
    add_with_beginnings(text.substr(at, end - at), names);
    at = end;
  }
  std::string defines = "#define KILN_USES(name) KILN_USES_##name\n";
  for (const std::string_view name : names) defines += "#define KILN_USES_" + std::string(name) + " 1\n";
  return defines;
}

}  // namespace kiln::amdgpu_pm4
