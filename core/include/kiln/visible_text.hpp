// Visible text: foreign text as a terminal may show it: no byte of it acts as a command.
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

// One line: control characters, invalid UTF-8 and characters that change the direction of writing are shown as "\n",
// "\t", "\x1b" or "\u009b".
std::string visible(std::string_view text);

// Several lines: ends of lines are unchanged. Each line after the first is indented by two spaces, so that it is not
// mistaken for a separate message.
std::string visible_lines(std::string_view text);

// Bytes of the character that the text begins with; 0: it begins with no valid UTF-8. REQUIRES: the text is not empty.
std::size_t character_length(std::string_view text) noexcept;

// Whether a terminal may obey the character, of which `character` holds the bytes: C0, DEL, C1, directions of writing.
bool is_control_character(std::string_view character) noexcept;

}  // namespace kiln
