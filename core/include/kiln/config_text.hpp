// Configuration text: values as TOML's syntax has them, and what a person most likely meant by an unknown word. For
// messages and for what `config show` prints.
//
// Thread-safety: pure functions. Ownership: texts are the caller's; nearest_word() and close_word() borrow from the
// candidates.
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

// In quotes, with escapes for quotes, backslashes and control characters: always one line.
std::string toml_text(std::string_view text);

// Bare where it can be, else in quotes.
std::string toml_key(std::string_view key);

// Always recognisable as floating point, and read back as the same value: "2.0", "1e+30", "nan".
std::string print_number(double number);

// Insertions, deletions, replacements and swaps of neighbours that turn one word into the other. Only the first 128
// bytes of each word are compared.
std::size_t edit_distance(std::string_view from, std::string_view to);

// The candidate with the least distance; of several, the one that begins most alike. Empty where there is no candidate.
std::string_view nearest_word(std::string_view word, std::span<const std::string_view> candidates);
// The same, upper and lower case being alike, where at most a third of the word's letters differ: a typing error.
std::optional<std::string_view> close_word(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace config
}  // namespace kiln
