// Configuration text: formats values in TOML syntax, and finds the most similar known word for an unknown word. Messages and
// `config show` use it.
//
// Thread-safety: pure functions. Ownership: the caller owns the texts; the results of nearest_word() and close_word() refer
// to the candidates.
//
//   if (auto meant = kiln::config::close_word(word, names)) message += "; nearest: " + std::string(*meant);
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace kiln {
namespace [[gnu::visibility("default")]] config {

// Returns the text on one line in quotes, with escapes for quotes, backslashes and control characters.
std::string toml_text(std::string_view text);

// Returns a bare key if TOML allows it, else a quoted key.
std::string toml_key(std::string_view key);

// Returns a TOML floating-point number that parses to the same value: "2.0", "1e+30", "nan".
std::string print_number(double number);

// Returns the number of insertions, deletions, replacements and swaps of neighbours that turn one word into the other.
// Compares only the first 128 bytes of each word.
std::size_t edit_distance(std::string_view from, std::string_view to);

// Returns the candidate with the least distance; of several, the one with the longest common start. Empty: no candidates.
std::string_view nearest_word(std::string_view word, std::span<const std::string_view> candidates);
// Returns the nearest word without regard to case. nullopt: every candidate differs in more than one letter and in more than
// a third of the letters.
std::optional<std::string_view> close_word(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace config
}  // namespace kiln
