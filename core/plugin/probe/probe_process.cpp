#include "plugin/probe/probe_process.hpp"

#include <kiln/buffer.hpp>
#include <kiln/clock.hpp>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
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

struct SpawnSetup {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;

  SpawnSetup() {
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
  }
  SpawnSetup(const SpawnSetup&) = delete;
  SpawnSetup& operator=(const SpawnSetup&) = delete;
  ~SpawnSetup() {
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
  }
};

class Child {
 public:
  explicit Child(pid_t pid) noexcept : pid_(pid) {}
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() { kill_and_reap(); }

  // Looks once, without waiting. Where somebody else reaped the child its status stays unknown.
  bool ended() {
    if (reaped_) return true;
    siginfo_t seen{};
    if (waitid(P_PID, static_cast<id_t>(pid_), &seen, WEXITED | WNOHANG | WNOWAIT) == 0) {
      if (seen.si_pid == 0) return false;
      kill(-pid_, SIGKILL);  // what it left behind in its group, whose number is ours until the child is reaped
      pid_t answer = 0;
      do answer = waitpid(pid_, &status_, 0);
      while (answer < 0 && errno == EINTR);
      known_ = answer == pid_;
    } else if (errno == EINTR) {
      return false;
    }
    reaped_ = true;
    return true;
  }
  std::optional<int> status() const noexcept { return known_ ? std::optional(status_) : std::nullopt; }

  void kill_and_reap() {
    if (reaped_) return;
    kill(-pid_, SIGKILL);
    kill(pid_, SIGKILL);
    while (waitpid(pid_, &status_, 0) < 0 && errno == EINTR) {
    }
    reaped_ = true;
  }

 private:
  pid_t pid_;
  int status_ = 0;
  bool reaped_ = false;
  bool known_ = false;
};

int spawn(pid_t& pid, const std::string& probe, const std::string& plugin, int answer_fd) {
  SpawnSetup setup;
  int error = 0;
  const auto also = [&error](int result) { error = error != 0 ? error : result; };
  also(posix_spawn_file_actions_addopen(&setup.files, 0, "/dev/null", O_RDONLY, 0));
  also(posix_spawn_file_actions_adddup2(&setup.files, answer_fd, 1));
  also(posix_spawn_file_actions_addopen(&setup.files, 2, "/dev/null", O_WRONLY, 0));
  also(posix_spawn_file_actions_addclosefrom_np(&setup.files, 3));
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  also(posix_spawnattr_setsigmask(&setup.attributes, &none));
  also(posix_spawnattr_setsigdefault(&setup.attributes, &all));
  also(posix_spawnattr_setpgroup(&setup.attributes, 0));
  also(posix_spawnattr_setflags(&setup.attributes,
                                POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP));
  if (error != 0) return error;
  std::string words[] = {probe, "load", plugin};
  char* argv[] = {words[0].data(), words[1].data(), words[2].data(), nullptr};
  return posix_spawn(&pid, probe.c_str(), &setup.files, &setup.attributes, argv, environ);
}

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
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return unavailable(std::string("kiln-probe: no pipe to it: ") + std::strerror(errno));
  }
  const UniqueFd from_child(ends[0]);
  UniqueFd to_parent(ends[1]);
  fcntl(from_child.get(), F_SETFL, O_NONBLOCK);
  pid_t pid = 0;
  if (const int error = spawn(pid, probe.string(), plugin.string(), to_parent.get()); error != 0) {
    return unavailable("a plugin that was not seen before is tried in kiln-probe first, and " + probe.string() +
                       " cannot be started: " + std::strerror(error));
  }
  Child child(pid);
  to_parent = UniqueFd();

  // Time counts in which this process ran too: where it was frozen or stopped, so was the child, as a rule.
  std::chrono::nanoseconds waited{0};
  std::string answer;
  bool open = true;
  while (!child.ended()) {
    if (waited >= timeout) {
      child.kill_and_reap();
      const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(timeout).count();
      return ProbeVerdict{VerdictKind::hung, timed_out("it did not finish registering within " + std::to_string(ms) +
                                                       " ms when kiln-probe tried it")};
    }
    const Clock::time_point before = Clock::now();
    wait_a_little(from_child.get(), open, Deadline::after(timeout - waited));
    waited += std::min<std::chrono::nanoseconds>(Clock::now() - before, most_counted);
    if (open) open = take_answer(from_child.get(), answer);
  }
  // What was written before the end is in the pipe; a process that escaped may hold the other end, so no waiting for
  // EOF.
  for (int i = 0; i < 64 && open; ++i) {
    pollfd more{from_child.get(), POLLIN, 0};
    if (poll(&more, 1, 0) <= 0) break;
    open = take_answer(from_child.get(), answer);
  }
  return judge(child.status(), answer);
}

}  // namespace kiln
