#include "watch/live_area.hpp"

#include "progress/terminal_text.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace kiln::host {

LiveArea::~LiveArea() {
  const std::lock_guard lock(mutex_);
  if (!drawn_.empty()) put(erasure(size_of_terminal(terminal_).width));
}

std::size_t LiveArea::width() const { return size_of_terminal(terminal_).width; }

void LiveArea::draw(const std::vector<std::string>& lines) {
  const TerminalSize size = size_of_terminal(terminal_);
  const std::lock_guard lock(mutex_);
  std::string text = erasure(size.width);
  drawn_.clear();
  // One column and one row stay free: what fills the last one may scroll the screen.
  for (const std::string& line : lines) {
    if (drawn_.size() + 1 >= size.height) break;
    text += drawn_.emplace_back(cut_to(line, size.width - 1)) + "\n";
  }
  put(text);
}

void LiveArea::print(std::string_view text) {
  const std::lock_guard lock(mutex_);
  std::string whole = drawn_.empty() ? std::string() : erasure(size_of_terminal(terminal_).width);
  whole += text;
  for (const std::string& line : drawn_) whole += line + "\n";
  put(whole);
}

// To the first of the lines, and everything from there away. A terminal that has become narrower has broken them.
std::string LiveArea::erasure(std::size_t width) const {
  std::size_t rows = 0;
  for (const std::string& line : drawn_) rows += std::max<std::size_t>((columns_of(line) + width - 1) / width, 1);
  return rows == 0 ? std::string() : "\033[" + std::to_string(rows) + "A\r\033[J";
}

// At once: what is written in pieces flickers.
void LiveArea::put(std::string_view text) const {
  while (!text.empty()) {
    const ssize_t written = write(terminal_, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // a terminal that is gone sees nothing
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace kiln::host
