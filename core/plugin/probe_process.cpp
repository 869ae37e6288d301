#include "plugin/probe_process.hpp"

#include "base/os/child_process.hpp"

#include <kiln/clock.hpp>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>

namespace kiln {
namespace {

constexpr std::size_t most_answer_bytes = 4096;
// How often the child's state is looked at while it says nothing. What it says wakes at once.
constexpr int look_ms = 5;
// Of one such look at most so much counts: the rest, this process did not run.
constexpr std::chrono::milliseconds most_counted{100};

// False once there is nothing more to come.
bool take_answer(int fd, std::string& answer) {
  char bytes[512];
  const ssize_t count = ::read(fd, bytes, sizeof bytes);
  if (count < 0) return errno == EINTR || errno == EAGAIN;
  if (count == 0) return false;
  if (answer.size() < most_answer_bytes) answer.append(bytes, static_cast<std::size_t>(count));
  return true;
}

void wait_a_little(int fd, bool open, Deadline deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline.left()).count();
  pollfd waited{fd, POLLIN, 0};
  poll(&waited, open ? 1 : 0, static_cast<int>(std::clamp<std::int64_t>(left, 0, open ? look_ms : 1)));
}

std::string signal_name(int number) {
  const char* name = sigabbrev_np(number);
  return name != nullptr ? std::string("SIG") + name : "signal " + std::to_string(number);
}

ProbeVerdict crashed(std::string how) {
  return {VerdictKind::crashed,
          unsupported("it " + std::move(how) +
                      " when kiln-probe tried it: blocked until its file changes or `kiln plugins --retry` is run")};
}

// Signals that others send, not what a plugin does to itself.
bool from_outside(int number) noexcept {
  return number == SIGKILL || number == SIGTERM || number == SIGINT || number == SIGHUP;
}

Result<ProbeVerdict> judge(std::optional<int> status, const std::string& answer) {
  const auto told = verdict_of_line(answer);
  if (!status) return told ? *told : crashed("ended without an answer");
  if (WIFSIGNALED(*status)) {
    const std::string name = signal_name(WTERMSIG(*status));
    if (from_outside(WTERMSIG(*status)))
      return unavailable("kiln-probe was killed with " + name + " while it tried it");
    return crashed("crashed with " + name + (told ? " while the process was exiting" : ""));
  }
  const int code = WEXITSTATUS(*status);
  if (code == probe_exit_channel_lost) return crashed("closed file descriptors that are not its own");
  if (!told) return crashed("ended the process with status " + std::to_string(code));
  const int expected = told->kind == VerdictKind::ok ? 0 : probe_exit_failed;
  if (code != expected) return crashed("changed the status of the exiting process to " + std::to_string(code));
  return *told;
}

}  // namespace

Result<ProbeVerdict> probe_plugin(const std::filesystem::path& probe, const std::filesystem::path& plugin,
                                  std::chrono::nanoseconds timeout) {
  auto started = ChildProcess::start({probe, {"load", plugin.string()}, std::nullopt, -1});
  if (!started)
    return std::move(started).error().within("a plugin that was not seen before is tried in kiln-probe first");
  ChildProcess child = std::move(*started);
  child.close_input();
  const int from_child = child.output();
  fcntl(from_child, F_SETFL, O_NONBLOCK);

  // Time counts in which this process ran too: where it was frozen or stopped, so was the child, as a rule.
  std::chrono::nanoseconds waited{0};
  std::string answer;
  bool open = true;
  while (!child.ended()) {
    if (waited >= timeout) {
      (void)child.stop(std::chrono::nanoseconds(0));
      const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(timeout).count();
      return ProbeVerdict{VerdictKind::hung, timed_out("it did not finish registering within " + std::to_string(ms) +
                                                       " ms when kiln-probe tried it")};
    }
    const Clock::time_point before = Clock::now();
    wait_a_little(from_child, open, Deadline::after(timeout - waited));
    waited += std::min<std::chrono::nanoseconds>(Clock::now() - before, most_counted);
    if (open) open = take_answer(from_child, answer);
  }
  // What was written before the end is in the pipe; a process that escaped may hold the other end, so no waiting for
  // EOF.
  for (int i = 0; i < 64 && open; ++i) {
    pollfd more{from_child, POLLIN, 0};
    if (poll(&more, 1, 0) <= 0) break;
    open = take_answer(from_child, answer);
  }
  return judge(child.status(), answer);
}

namespace {

constexpr std::string_view ok_line = "kiln-probe 1 ok";
constexpr std::string_view failed_line = "kiln-probe 1 failed ";
// A pipe takes a line of this size in one piece.
constexpr std::size_t most_line_bytes = 2048;

constexpr StatusCode failures[] = {StatusCode::invalid_argument, StatusCode::not_found,   StatusCode::unsupported,
                                   StatusCode::unavailable,      StatusCode::corrupt,     StatusCode::io,
                                   StatusCode::timeout,          StatusCode::device_lost, StatusCode::internal};

}  // namespace

std::string_view to_string(VerdictKind kind) noexcept {
  switch (kind) {
    case VerdictKind::ok:
      return "ok";
    case VerdictKind::failed:
      return "failed";
    case VerdictKind::crashed:
      return "crashed";
    case VerdictKind::hung:
      return "hung";
    case VerdictKind::invalid:
      break;
  }
  return "invalid";
}

std::optional<VerdictKind> verdict_kind_of(std::string_view name) noexcept {
  for (const VerdictKind kind : {VerdictKind::ok, VerdictKind::failed, VerdictKind::crashed, VerdictKind::hung}) {
    if (name == to_string(kind)) return kind;
  }
  return std::nullopt;
}

std::optional<StatusCode> status_code_of(std::string_view name) noexcept {
  for (const StatusCode code : failures) {
    if (name == to_string(code)) return code;
  }
  return std::nullopt;
}

std::chrono::seconds pause_after(std::uint32_t attempts) noexcept {
  if (attempts <= 1) return std::chrono::seconds(0);
  constexpr std::uint32_t most_doublings = 6;
  return std::chrono::seconds(60) * (1u << std::min(attempts - 2, most_doublings));  // at most about an hour
}

std::uint32_t patience_after(std::uint32_t attempts) noexcept { return std::min(attempts + 1, 4u); }

bool ProbeVerdict::lasting() const noexcept {
  return kind != VerdictKind::failed || (status.code != StatusCode::unavailable && status.code != StatusCode::io &&
                                         status.code != StatusCode::timeout && status.code != StatusCode::not_found);
}

std::string to_line(const Status& outcome) {
  if (outcome.ok()) return std::string(ok_line) += '\n';
  std::string line(failed_line);
  line += to_string(outcome.code);
  line += ' ';
  line += outcome.message;
  std::ranges::replace(line, '\n', ' ');
  line.resize(std::min(line.size(), most_line_bytes));
  return line + "\n";
}

std::optional<ProbeVerdict> verdict_of_line(std::string_view line) {
  if (!line.ends_with('\n')) return std::nullopt;
  line.remove_suffix(1);
  if (line == ok_line) return ProbeVerdict{VerdictKind::ok, {}};
  if (!line.starts_with(failed_line)) return std::nullopt;
  line.remove_prefix(failed_line.size());
  const auto code = status_code_of(line.substr(0, line.find(' ')));
  if (!code) return std::nullopt;
  const std::size_t message = line.find(' ');
  return ProbeVerdict{VerdictKind::failed, {*code, std::string(message == line.npos ? "" : line.substr(message + 1))}};
}

}  // namespace kiln
