#include "progress/terminal_text.hpp"

#include <sys/ioctl.h>

#include <algorithm>

namespace kiln::host {
namespace {

bool continues_a_character(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

// How long the sequence is that begins here; 0: none does.
std::size_t escape_at(std::string_view text, std::size_t at) {
  if (text[at] != '\033' || at + 1 >= text.size() || text[at + 1] != '[') return 0;
  std::size_t end = at + 2;
  while (end < text.size() && (text[end] < '@' || text[end] > '~')) ++end;
  return std::min(end + 1, text.size()) - at;
}

}  // namespace

TerminalSize size_of_terminal(int terminal) {
  winsize size{};
  TerminalSize answer;
  if (ioctl(terminal, TIOCGWINSZ, &size) != 0) return answer;
  if (size.ws_col != 0) answer.width = size.ws_col;
  if (size.ws_row != 0) answer.height = size.ws_row;
  return answer;
}

std::size_t columns_of(std::string_view text) {
  std::size_t columns = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t escape = escape_at(text, at);
    if (escape == 0) columns += continues_a_character(text[at]) ? 0 : 1;
    at += std::max<std::size_t>(escape, 1);
  }
  return columns;
}

std::string cut_to(std::string_view text, std::size_t columns) {
  std::string cut;
  std::size_t used = 0;
  for (std::size_t at = 0; at < text.size();) {
    if (const std::size_t escape = escape_at(text, at); escape != 0) {
      cut += text.substr(at, escape);
      at += escape;
      continue;
    }
    std::size_t end = at + 1;
    while (end < text.size() && continues_a_character(text[end])) ++end;
    if (used < columns) cut += text.substr(at, end - at);
    ++used;
    at = end;
  }
  return cut;
}

}  // namespace kiln::host
