#include "base/os/child_process.hpp"

#include <kiln/stop_scope.hpp>
#include <kiln/without_sigpipe.hpp>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace kiln {
namespace {

constexpr int extra_of_child = 3;
constexpr int look_for_stop_ms = 20;

struct SpawnFiles {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  SpawnFiles() {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
  }
  SpawnFiles(const SpawnFiles&) = delete;
  SpawnFiles& operator=(const SpawnFiles&) = delete;
  ~SpawnFiles() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
};

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (std::string& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

int spawn(pid_t& pid, const ChildOptions& options, int input, int output) {
  SpawnFiles files;
  int error = 0;
  const auto also = [&error](int result) { error = error != 0 ? error : result; };
  also(posix_spawn_file_actions_adddup2(&files.actions, input, 0));
  also(posix_spawn_file_actions_adddup2(&files.actions, output, 1));
  also(posix_spawn_file_actions_addopen(&files.actions, 2, "/dev/null", O_WRONLY, 0));
  if (options.extra >= 0) also(posix_spawn_file_actions_adddup2(&files.actions, options.extra, extra_of_child));
  also(posix_spawn_file_actions_addclosefrom_np(&files.actions, options.extra >= 0 ? extra_of_child + 1 : 3));
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  also(posix_spawnattr_setsigmask(&files.attributes, &none));
  also(posix_spawnattr_setsigdefault(&files.attributes, &all));
  also(posix_spawnattr_setpgroup(&files.attributes, 0));
  also(posix_spawnattr_setflags(&files.attributes,
                                POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP));
  if (error != 0) return error;
  std::vector<std::string> words{options.program.string()};
  words.insert(words.end(), options.arguments.begin(), options.arguments.end());
  std::vector<std::string> variables = options.environment.value_or(std::vector<std::string>());
  const std::vector<char*> argv = pointers(words), envp = pointers(variables);
  return posix_spawn(&pid, words.front().c_str(), &files.actions, &files.attributes, argv.data(),
                     options.environment ? envp.data() : environ);
}

std::string end_of(int status) {
  if (WIFSIGNALED(status)) {
    const char* name = sigabbrev_np(WTERMSIG(status));
    return std::string("ended by SIG") + (name != nullptr ? name : "?");
  }
  return "ended with status " + std::to_string(WEXITSTATUS(status));
}

// Both ends at 4 or above, so that giving the child its descriptors 0 to 3 overwrites none of them.
Result<std::pair<UniqueFd, UniqueFd>> make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return unavailable(std::string("cannot create a pipe: ") + std::strerror(errno));
  UniqueFd read_end(ends[0]), write_end(ends[1]);
  for (UniqueFd* end : {&read_end, &write_end}) {
    if (end->get() > extra_of_child) continue;
    UniqueFd higher(fcntl(end->get(), F_DUPFD_CLOEXEC, extra_of_child + 1));
    if (!higher) return unavailable(std::string("cannot create a pipe: ") + std::strerror(errno));
    *end = std::move(higher);
  }
  return std::pair(std::move(read_end), std::move(write_end));
}

}  // namespace

Result<ChildProcess> ChildProcess::start(const ChildOptions& options) {
  auto in = make_pipe();
  if (!in) return std::move(in).error();
  auto out = make_pipe();
  if (!out) return std::move(out).error();
  pid_t pid = -1;
  if (const int error = spawn(pid, options, in->first.get(), out->second.get()); error != 0) {
    return unavailable(options.program.string() + " cannot be started: " + std::strerror(error));
  }
  ChildProcess child(pid, std::move(in->second), std::move(out->first));
  // So that a child that does not read cannot hold this process up.
  fcntl(child.to_child_.get(), F_SETFL, O_NONBLOCK);
  return child;
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      status_(other.status_),
      to_child_(std::move(other.to_child_)),
      from_child_(std::move(other.from_child_)) {}

ChildProcess::~ChildProcess() { (void)stop(std::chrono::nanoseconds(0)); }

Status ChildProcess::send(std::string_view text, Deadline deadline) {
  const WithoutSigpipe scope;
  while (!text.empty()) {
    const ssize_t count = write(to_child_.get(), text.data(), text.size());
    if (count > 0) text.remove_prefix(static_cast<std::size_t>(count));
    if (count > 0 || (count < 0 && errno == EINTR)) continue;
    if (errno != EAGAIN) return unavailable(std::string("cannot write to the child process: ") + std::strerror(errno));
    if (current_stop() != nullptr && current_stop()->load()) return cancelled("stopped on request");
    if (deadline.passed()) return timed_out("writing to the child process timed out");
    pollfd room{to_child_.get(), POLLOUT, 0};
    poll(&room, 1, look_for_stop_ms);
  }
  return {};
}

bool ChildProcess::ended() noexcept {
  if (pid_ < 0) return true;
  siginfo_t seen{};
  if (waitid(P_PID, static_cast<id_t>(pid_), &seen, WEXITED | WNOHANG | WNOWAIT) == 0) {
    if (seen.si_pid == 0) return false;
    kill(-pid_, SIGKILL);  // the number of its group is this child's until it is reaped
    int status = 0;
    pid_t answer = 0;
    do answer = waitpid(pid_, &status, 0);
    while (answer < 0 && errno == EINTR);
    if (answer == pid_) status_ = status;
  } else if (errno == EINTR) {
    return false;
  }
  pid_ = -1;
  return true;
}

std::string ChildProcess::stop(std::chrono::nanoseconds grace) {
  const pid_t pid = std::exchange(pid_, -1);
  if (pid < 0) return "not started";
  to_child_ = UniqueFd();
  from_child_ = UniqueFd();
  int status = 0;
  pid_t answer = 0;
  for (const Deadline deadline = Deadline::after(grace); answer == 0 && !deadline.passed();) {
    answer = waitpid(pid, &status, WNOHANG);
    if (answer == 0) usleep(1000);
  }
  const std::string how = answer == pid ? end_of(status) : "was ended";
  kill(-pid, SIGKILL);
  if (answer != pid) {
    kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
  }
  return how;
}

}  // namespace kiln
