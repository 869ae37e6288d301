// GLSL text as tokens, without comments, and helpers for brackets and separators.
//
// Thread-safety: pure functions. Ownership: a token borrows from the text that it was read from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace kiln::opengl::glsl {

struct Token {
  std::string_view text;
  std::uint32_t line = 0;    // in the text, from 1; of a macro's tokens: where the macro is used
  std::uint32_t source = 0;  // the source string number, after preprocessing: #line may change both
};

using Tokens = std::span<const Token>;

bool is_name(std::string_view token) noexcept;     // also a keyword
bool is_opening(std::string_view token) noexcept;  // ( [ {
bool is_closing(std::string_view token) noexcept;  // ) ] }

// The length of the end of a line (LF, CRLF or CR) that `text` begins with; 0: none.
std::size_t line_end(std::string_view text) noexcept;

// The end of a line is the token "\n", which does not borrow. A backslash before it removes it.
std::vector<Token> tokens_of(std::string_view text);

// The index behind the bracket that closes the one at `at`; without such a bracket, the number of tokens.
std::size_t past_brackets(Tokens tokens, std::size_t at);
// The tokens between the bracket at `at` and the one that closes it.
Tokens in_brackets(Tokens tokens, std::size_t at);

// The pieces between separators outside brackets. No tokens: one empty piece.
std::vector<Tokens> split(Tokens tokens, std::string_view separator);

}  // namespace kiln::opengl::glsl
