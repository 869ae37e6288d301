#include <kiln/visible_text.hpp>

#include <cstdint>
#include <cstdio>

namespace kiln {
namespace {

std::uint32_t code_point(std::string_view character) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(character[i])); };
  switch (character.size()) {
    case 1:
      return byte(0);
    case 2:
      return (byte(0) & 0x1fu) << 6u | (byte(1) & 0x3fu);
    case 3:
      return (byte(0) & 0x0fu) << 12u | (byte(1) & 0x3fu) << 6u | (byte(2) & 0x3fu);
    default:
      return (byte(0) & 0x07u) << 18u | (byte(1) & 0x3fu) << 12u | (byte(2) & 0x3fu) << 6u | (byte(3) & 0x3fu);
  }
}

void append_escape(std::string& to, std::uint32_t code, bool is_byte) {
  char escape[12];
  std::snprintf(escape, sizeof escape, is_byte ? "\\x%02x" : "\\u%04x", static_cast<unsigned>(code));
  to += escape;
}

void append(std::string& to, std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    if (text[0] == '\n') {
      to += "\\n";
    } else if (text[0] == '\t') {
      to += "\\t";
    } else if (length == 0) {
      append_escape(to, static_cast<unsigned char>(text[0]), true);
    } else if (is_control_character(text.substr(0, length))) {
      append_escape(to, code_point(text.substr(0, length)), length == 1);
    } else {
      to += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
}

}  // namespace

std::size_t character_length(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  const std::size_t length = first < 0x80                    ? 1
                             : first >= 0xc2 && first < 0xe0 ? 2
                             : first >= 0xe0 && first < 0xf0 ? 3
                             : first >= 0xf0 && first < 0xf5 ? 4
                                                             : 0;
  if (length == 0 || length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const bool overlong = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
  const bool surrogate = first == 0xed && byte(1) >= 0xa0;
  const bool beyond = first == 0xf4 && byte(1) >= 0x90;
  return overlong || surrogate || beyond ? 0 : length;
}

bool is_control_character(std::string_view character) noexcept {
  const std::uint32_t code = code_point(character);
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x061c || code == 0x200e || code == 0x200f ||
         (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

std::string visible(std::string_view text) {
  std::string shown;
  append(shown, text);
  return shown;
}

std::string visible_lines(std::string_view text) {
  std::string shown;
  for (;;) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    append(shown, line);
    if (end == std::string_view::npos || end + 1 == text.size()) return shown;
    shown += "\n  ";
    text.remove_prefix(end + 1);
  }
}

}  // namespace kiln
