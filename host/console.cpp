#include "console.hpp"

#include "interrupt.hpp"
#include "progress.hpp"

#include <kiln/config_reader.hpp>
#include <kiln/result_files.hpp>
#include <kiln/stop_scope.hpp>
#include <kiln/visible_text.hpp>

#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>

namespace kiln::host {

namespace {

bool colour_on(int descriptor) {
  const char* no_colour = std::getenv("NO_COLOR");
  if (no_colour != nullptr && *no_colour != '\0') return false;
  const char* terminal = std::getenv("TERM");
  return isatty(descriptor) == 1 && (terminal == nullptr || std::strcmp(terminal, "dumb") != 0);
}

}  // namespace

bool colour_on_stdout() { return colour_on(STDOUT_FILENO); }
bool colour_on_stderr() { return colour_on(STDERR_FILENO); }

bool stderr_is_terminal() { return isatty(STDERR_FILENO) == 1; }

void ConsoleLog::write(LogLevel level, std::string_view component, std::string_view message) noexcept {
  std::string line = "kiln: ";
  line.append(to_string(level))
      .append(": ")
      .append(component)
      .append("[")
      .append(std::to_string(gettid()))
      .append("]: ");
  line = visible_lines(line.append(message)) + "\n";
  const std::lock_guard lock(mutex_);
  if (to_) return to_(line);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

void ConsoleLog::redirect(std::function<void(std::string_view line)> to) {
  const std::lock_guard lock(mutex_);
  to_ = std::move(to);
}

void complain(std::string_view message) {
  const std::string line = "kiln: " + visible_lines(message) + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

Status emit(std::string_view text, const std::optional<std::filesystem::path>& file) {
  if (!file) {
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
      return io_error(std::string("standard output: ") + std::strerror(errno));
    }
    return {};
  }
  auto atomic = AtomicFile::create(*file);
  if (!atomic) return std::move(atomic).error();
  if (Status status = atomic->write(std::as_bytes(std::span(text.data(), text.size()))); !status.ok()) return status;
  const StopScope stop(&interrupted());  // another process that commits is not waited for then
  return atomic->commit(user_state_folder());
}

ProgressLine::ProgressLine(Progress progress)
    : mode_(progress == Progress::plain                               ? Mode::lines
            : progress == Progress::automatic && stderr_is_terminal() ? Mode::redrawn
                                                                      : Mode::silent) {}

ProgressLine::~ProgressLine() {
  if (drawn_) std::fputs("\r\033[K", stderr);
}

void ProgressLine::show(std::string_view text) {
  if (mode_ == Mode::silent) return;
  if (mode_ == Mode::lines) {
    complain(text);
    return;
  }
  // What wraps could not be wiped.
  const std::string line = "\r\033[K" + cut_to(visible(text), size_of_terminal(STDERR_FILENO).width - 1);
  std::fwrite(line.data(), 1, line.size(), stderr);
  std::fflush(stderr);
  drawn_ = true;
}

}  // namespace kiln::host
