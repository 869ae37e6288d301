// LiveArea: lines at the end of a terminal's output that are drawn again and again in their place.
//
// Lines are cut to the terminal's width and height as they are at that moment. What else is to be said goes above them
// by way of print(). The cursor stands below them, and is never hidden: whatever ends the process, the terminal needs
// nothing put back. Thread-safety: every method from any thread. Ownership: the descriptor is the caller's; the
// destructor wipes the lines.
#pragma once

#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::host {

class LiveArea {
 public:
  explicit LiveArea(int terminal) : terminal_(terminal) {}
  ~LiveArea();
  LiveArea(const LiveArea&) = delete;
  LiveArea& operator=(const LiveArea&) = delete;

  void draw(const std::vector<std::string>& lines);
  // A whole line, or several, with their ends.
  void print(std::string_view text);
  std::size_t width() const;  // of the terminal, in columns

 private:
  std::string erasure(std::size_t width) const;
  void put(std::string_view text) const;

  const int terminal_;
  std::mutex mutex_;
  std::vector<std::string> drawn_;  // as they stand on the screen
};

}  // namespace kiln::host
