// The fields of a key in words for a person.
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

// What key_of() encodes as an integer is answered as one, an access as its word; text as it is; anything else in
// hexadecimal.
std::string words_of_field(const KeyField& field);

// UTF-8, and nothing but characters, line ends and tabs.
bool is_text(std::string_view bytes) noexcept;
std::string hex_of_bytes(std::string_view bytes);

// In which fields two keys differ, and how far apart that puts them: for naming what made a miss.
//
// Thread-safety: pure. Ownership: values.

// How far apart two keys are: first by the causes, then by how much of the source differs.
struct KeyDistance {
  std::uint32_t causes = 0;  // fields, but all of a device's count once, and all of a driver's likewise
  std::uint64_t lines = 0;   // of the sources
  auto operator<=>(const KeyDistance&) const = default;
};

struct KeyComparison {
  KeyDistance distance;
  std::vector<KeyDifference> differences;  // in the order of the asked key's fields, then those that it has not
};

// Fields of one name stand against one another in their order. nullopt where either is no key material.
std::optional<KeyComparison> compare_keys(std::string_view asked, std::string_view stored);

}  // namespace kiln
