// nearest_word: what a person most likely meant by a word that is not known.
//
// Thread-safety: pure functions. Ownership: answers borrow from the candidates.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace kiln::config {

// Insertions, deletions, replacements and swaps of neighbours that turn one word into the other. Words are compared up
// to their first 128 bytes.
std::size_t edit_distance(std::string_view from, std::string_view to);

// The candidate with the least distance; of several, the one that begins most alike. Empty where there is no candidate.
std::string_view nearest_word(std::string_view word, std::span<const std::string_view> candidates);
// The same, upper and lower case being alike, where at most a third of the word's letters differ: a typing error.
std::optional<std::string_view> close_word(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace kiln::config
