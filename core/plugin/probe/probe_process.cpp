#include "plugin/probe/probe_process.hpp"

#include "base/os/child_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <kiln/clock.hpp>

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
                      " when kiln-probe tried it: blocked until its file changes or `kiln cache clear --all` is run")};
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

}  // namespace kiln
