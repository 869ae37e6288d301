// The exit statuses of `kiln`: a contract with scripts.
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

enum ExitStatus : int {
  exit_done = 0,
  exit_job_failed = 1,
  exit_usage = 2,      // usage or configuration
  exit_no_device = 3,  // no device could serve
};

// Console: messages on standard error, results on standard output or in a file; colour and redrawing on terminals only.
//
// Thread-safety: ConsoleLog from any thread, the rest from the main thread.

enum class Progress { invalid = 0, automatic, plain, none };

// Whether the stream is a terminal with colour (NO_COLOR and TERM=dumb disable it).
bool colour_on_stdout();
bool colour_on_stderr();
bool stderr_is_terminal();

// A line on standard error: "kiln: level: component[thread]: message", with the system's thread number.
class ConsoleLog : public LogSink {
 public:
  void write(LogLevel level, std::string_view component, std::string_view message) noexcept override;
  // Passes each line to this function instead, for drawing on a terminal; null ends that.
  void redirect(std::function<void(std::string_view line)> to);

 private:
  std::mutex mutex_;
  std::function<void(std::string_view)> to_;
};

// "kiln: message" on standard error, as visible_lines().
void complain(std::string_view message);

// Writes the result of a verb to standard output, or atomically to a file (--output). A failed write or a closed pipe
// is an error.
Status emit(std::string_view text, const std::optional<std::filesystem::path>& file);

// A progress line on standard error: redrawn on a terminal, one line per step with Progress::plain.
class ProgressLine {
 public:
  explicit ProgressLine(Progress progress);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  void show(std::string_view text);
  // Whether the line is redrawn in place, so that frequent changes are allowed.
  bool is_redrawn() const noexcept { return mode_ == Mode::redrawn; }

 private:
  enum class Mode { silent, redrawn, lines };
  Mode mode_;
  bool drawn_ = false;
};

}  // namespace kiln::host
