// Key differences: shows key fields as text and compares two keys, to explain a cache miss.
//
// Thread-safety: pure. Ownership: values.
#pragma once

#include "cache/key_material.hpp"

#include <kiln/cache_admin.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

// Formats a field: integers and access modes as text, text unchanged, other bytes in hexadecimal.
std::string words_of_field(const KeyField& field);

// Valid UTF-8 without control characters, except line ends and tabs.
bool is_text(std::string_view bytes) noexcept;
std::string hex_of_bytes(std::string_view bytes);

// Distance between two keys, ordered by the number of causes, then by the differing source lines.
struct KeyDistance {
  std::uint32_t causes = 0;  // differing fields; the device fields count as one, and so do the driver fields
  std::uint64_t lines = 0;   // differing source lines
  auto operator<=>(const KeyDistance&) const = default;
};

struct KeyComparison {
  KeyDistance distance;
  std::vector<KeyDifference> differences;  // in the order of the asked key, then fields that only the stored key has
};

// Compares fields of equal name in their order. nullopt: one of the arguments is not key material.
std::optional<KeyComparison> compare_keys(std::string_view asked, std::string_view stored);

}  // namespace kiln
