// The text of a user's kernel in tokens, without comments, and what can be told of a token or of brackets among them.
// It is read as GLSL; for finding a word it serves OpenCL C too.
//
// Thread-safety: pure functions. Ownership: a token borrows from the text that it was read from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace kiln::dynamic_shaders {

struct Token {
  std::string_view text;
  std::uint32_t line = 0;  // of the kernel's text, from 1; of a macro's tokens, where it is used
};

using Tokens = std::span<const Token>;

bool is_name(std::string_view token) noexcept;     // also a keyword
bool is_opening(std::string_view token) noexcept;  // ( [ {
bool is_closing(std::string_view token) noexcept;  // ) ] }
bool is_scalar_type(std::string_view token) noexcept;
bool is_qualifier(std::string_view token) noexcept;  // of a declaration; layout(...) is not among them

// Ends of lines are among them, as "\n", unless a backslash stands before one.
std::vector<Token> tokens_of(std::string_view text);

// The index behind the bracket that closes the one at `at`; where none does, how many tokens there are.
std::size_t past_brackets(Tokens tokens, std::size_t at);
// What stands between the bracket at `at` and the one that closes it.
Tokens in_brackets(Tokens tokens, std::size_t at);

// The pieces between separators that stand in no bracket; one that is empty where there are no tokens.
std::vector<Tokens> split(Tokens tokens, std::string_view separator);

}  // namespace kiln::dynamic_shaders
