// Console: talk on standard error, results on standard output or in a file; colour and redrawing only on a terminal.
//
// Thread-safety: ConsoleLog may be written to from any thread; the rest belongs to the main thread.
#pragma once

#include <kiln/log.hpp>
#include <kiln/status.hpp>

#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace kiln::host {

enum class Progress { invalid = 0, automatic, plain, none };

// True where the stream is a terminal that wants colour (NO_COLOR and TERM=dumb are honoured).
bool colour_on_stdout();
bool colour_on_stderr();
bool stderr_is_terminal();

// A line on standard error: "kiln: level: component[thread]: message", the thread by its number in the system.
class ConsoleLog : public LogSink {
 public:
  void write(LogLevel level, std::string_view component, std::string_view message) noexcept override;
  // Hands each line, with its end, to who draws on the terminal, until it is called again with nothing.
  void redirect(std::function<void(std::string_view line)> to);

 private:
  std::mutex mutex_;
  std::function<void(std::string_view)> to_;
};

// "kiln: message" on standard error, as visible_lines().
void complain(std::string_view message);

// The result of a verb: to standard output, or atomically to a file (--output). A failed write is an error, a closed
// pipe too.
Status emit(std::string_view text, const std::optional<std::filesystem::path>& file);

// One line on standard error that says what is being done: redrawn on a terminal, a line each with Progress::plain.
class ProgressLine {
 public:
  explicit ProgressLine(Progress progress);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  void show(std::string_view text);
  // Whether the line is redrawn in its place: only then may it change as often as it likes.
  bool is_redrawn() const noexcept { return mode_ == Mode::redrawn; }

 private:
  enum class Mode { silent, redrawn, lines };
  Mode mode_;
  bool drawn_ = false;
};

}  // namespace kiln::host
