// The fields of a key in words for a person.
//
// Thread-safety: pure. Ownership: values.
#pragma once

#include "cache/format/key_material.hpp"

#include <string>
#include <string_view>

namespace kiln {

// What key_of() encodes as an integer is answered as one, an access as its word; text as it is; anything else in
// hexadecimal.
std::string words_of_field(const KeyField& field);

// UTF-8, and nothing but characters, line ends and tabs.
bool is_text(std::string_view bytes) noexcept;
std::string hex_of_bytes(std::string_view bytes);

}  // namespace kiln
