// A kernel's GLSL: its tokens, the text that is compiled, and the compiler's errors.
//
// GLSL text as tokens, without comments, and helpers for brackets and separators.
//
// Thread-safety: pure functions. Ownership: a token borrows from the text that it was read from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/kernel.hpp>

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

// The text that is handed to the GLSL compiler: version first, then the constants, then the user's lines with their
// numbers.
//
// Thread-safety: free functions. Ownership: values.

namespace kiln::opengl {

// A #version line stays first; without one, "#version 430 core" is put there. A "#line" after the constants makes the
// compiler count as in source.text. A byte-order mark is dropped. invalid_argument: another dialect, an entry other
// than main, a constant whose name is no identifier or whose text has a line break, a NUL byte.
Result<std::string> assemble(const KernelSource& source);

// Mesa's GLSL compiler moves a read of a `shared` variable behind barrier() where the value is used once, behind it, in
// the same block: it stops at a memory barrier, and not at barrier(). This text takes the place of barrier() there. It
// is an expression, and the inner barrier() is the built-in function.
inline constexpr std::string_view mesa_barrier = "(memoryBarrierShared(), barrier())";

// The source with the constant "barrier()", of this text, where it contains that word; else nullopt. As a constant it
// is part of the key. assemble() then also handles a text that defines, removes or tests a macro of its own with that
// name. invalid_argument there: the text declares a function named barrier, or calls one with arguments.
std::optional<KernelSource> with_barrier(const KernelSource& source, std::string_view text);

// The words of a GLSL compiler's errors: the user's file names in the driver's log, and what a text written for Vulkan
// must change.
//
// Thread-safety: pure functions. Ownership: values.

// The log with "FILE:LINE:COLUMN: " for each "SOURCE:LINE(COLUMN): " (Mesa), "SOURCE(LINE) : " (NVIDIA) or
// "ERROR: SOURCE:LINE: " (others) that begins a line. files[n] is the name of source string n; one without a name stays
// as it is.
std::string with_file_names(std::string_view log, std::span<const std::string> files);

// One sentence and a line for each construct of Vulkan's GLSL in the text, with its places and what to write instead;
// empty: there is none. text: as the compiler had it.
std::string vulkan_advice(std::string_view text, std::span<const std::string> files);

}  // namespace kiln::opengl
