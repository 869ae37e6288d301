// Visible text: escapes untrusted text for a terminal, so that no byte acts as a terminal command.
//
// Names of jobs, files and devices, compilers' messages and stored records may contain any bytes. Applying
// visible() to its own result changes nothing.
// Thread-safety: pure functions. Ownership: values.
//
//   std::cerr << kiln::visible(report.status.message) << '\n';
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace [[gnu::visibility("default")]] kiln {

// Returns the text on one line. Writes control characters, invalid UTF-8 and characters that change the writing direction
// as escapes such as "\n", "\t", "\x1b" or "\u009b".
std::string visible(std::string_view text);

// Returns the text on several lines. Does not escape ends of lines, and indents each line after the first by two spaces, so
// that it does not look like a separate message.
std::string visible_lines(std::string_view text);

// Returns the number of bytes of the first character; 0: the text does not begin with valid UTF-8. REQUIRES: the text is
// not empty.
std::size_t character_length(std::string_view text) noexcept;

// Returns whether a terminal may interpret the character as a command: C0, DEL, C1, or a writing direction. character: the
// bytes of one character.
bool is_control_character(std::string_view character) noexcept;

}  // namespace kiln
