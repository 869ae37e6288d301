// What fits on a terminal: its size, and text measured and cut by the columns that it takes there.
//
// Thread-safety: pure, but for the terminal's size, which may change at any time. Ownership: values.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kiln::host {

struct TerminalSize {  // in columns and rows; the usual ones where the terminal does not say
  std::size_t width = 80, height = 24;
};

TerminalSize size_of_terminal(int terminal);

// Of UTF-8 text: every character counts as one. What moves the cursor or changes colours ("\033[1m") counts as none.
std::size_t columns_of(std::string_view text);
// The first `columns` columns. What counts as none stays.
std::string cut_to(std::string_view text, std::size_t columns);

}  // namespace kiln::host
