#include "runtime/tuning/bench_process.hpp"

#include <kiln/clock.hpp>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace kiln {
namespace {

constexpr std::size_t most_line_bytes = std::size_t{1} << 20;

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

// A child that is gone is an error of the write, and no signal that ends whoever embeds Kiln.
class WithoutSigpipe {
 public:
  WithoutSigpipe() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigset_t pending;
    sigemptyset(&pending);
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  WithoutSigpipe(const WithoutSigpipe&) = delete;
  WithoutSigpipe& operator=(const WithoutSigpipe&) = delete;
  ~WithoutSigpipe() {
    const timespec at_once{};
    while (!was_pending_ && sigtimedwait(&pipe_, nullptr, &at_once) < 0 && errno == EINTR) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t pipe_, before_;
  bool was_pending_ = false;
};

constexpr int outputs_of_child = 3;

// outputs: becomes outputs_of_child; -1: the child has none.
int spawn(pid_t& pid, const std::string& program, int input, int output, int outputs) {
  SpawnFiles files;
  int error = 0;
  const auto also = [&error](int result) { error = error != 0 ? error : result; };
  also(posix_spawn_file_actions_adddup2(&files.actions, input, 0));
  also(posix_spawn_file_actions_adddup2(&files.actions, output, 1));
  also(posix_spawn_file_actions_addopen(&files.actions, 2, "/dev/null", O_WRONLY, 0));
  if (outputs >= 0) also(posix_spawn_file_actions_adddup2(&files.actions, outputs, outputs_of_child));
  also(posix_spawn_file_actions_addclosefrom_np(&files.actions, outputs >= 0 ? outputs_of_child + 1 : 3));
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  also(posix_spawnattr_setsigmask(&files.attributes, &none));
  also(posix_spawnattr_setsigdefault(&files.attributes, &all));
  also(posix_spawnattr_setpgroup(&files.attributes, 0));
  also(posix_spawnattr_setflags(&files.attributes,
                                POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP));
  if (error != 0) return error;
  std::string words[] = {program, "measure"};
  char* argv[] = {words[0].data(), words[1].data(), nullptr};
  return posix_spawn(&pid, program.c_str(), &files.actions, &files.attributes, argv, environ);
}

std::string end_of(int status) {
  if (WIFSIGNALED(status)) {
    const char* name = sigabbrev_np(WTERMSIG(status));
    return std::string("ended by SIG") + (name != nullptr ? name : "?");
  }
  return "ended with status " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

BenchProcess::BenchProcess(std::filesystem::path probe, BenchSetup setup, const std::atomic<bool>* interrupted)
    : probe_(std::move(probe)),
      setup_(std::move(setup)),
      interrupted_(interrupted),
      pauses_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!std::holds_alternative<std::string>(setup_.subject)) return;
  const UniqueFd made(memfd_create("kiln-outputs", MFD_CLOEXEC));
  // Above the descriptors that the child's standard streams take.
  if (made) outputs_ = UniqueFd(fcntl(made.get(), F_DUPFD_CLOEXEC, outputs_of_child + 1));
  if (outputs_) setup_.outputs = outputs_of_child;
}

BenchProcess::~BenchProcess() { (void)stop(); }

Status BenchProcess::start() {
  int in[2], out[2];
  if (pipe2(in, O_CLOEXEC) != 0) return unavailable(std::string("bench: no pipe: ") + std::strerror(errno));
  const UniqueFd child_input(in[0]);
  to_child_ = UniqueFd(in[1]);
  if (pipe2(out, O_CLOEXEC) != 0) return unavailable(std::string("bench: no pipe: ") + std::strerror(errno));
  from_child_ = UniqueFd(out[0]);
  const UniqueFd child_output(out[1]);
  heard_.clear();
  owed_ = 0;
  prepares_ = false;
  end_.clear();
  pid_t pid = -1;
  if (const int error = spawn(pid, probe_.string(), child_input.get(), child_output.get(), outputs_.get());
      error != 0) {
    return unavailable("bench: " + probe_.string() + " cannot be started: " + std::strerror(error));
  }
  {
    const std::lock_guard lock(mutex_);
    pid_ = pid;
    if (paused_) kill(-pid_, SIGSTOP);
  }
  return say(to_line(setup_));
}

void BenchProcess::pause() noexcept {
  {
    const std::lock_guard lock(mutex_);
    paused_ = true;
    if (pid_ > 0) kill(-pid_, SIGSTOP);
  }
  const std::uint64_t one = 1;
  // Full only where nobody listened to as many as it holds: the next to listen hears of it all the same.
  if (write(pauses_.get(), &one, sizeof one) < 0) return;
}

void BenchProcess::resume() noexcept {
  std::uint64_t pauses = 0;
  // Empty: there was no pause since the last time.
  if (read(pauses_.get(), &pauses, sizeof pauses) < 0) pauses = 0;
  const std::lock_guard lock(mutex_);
  paused_ = false;
  if (pid_ > 0) kill(-pid_, SIGCONT);
}

bool BenchProcess::paused() {
  const std::lock_guard lock(mutex_);
  return paused_;
}

Status BenchProcess::say(const std::string& line) {
  const WithoutSigpipe scope;
  for (std::size_t sent = 0; sent < line.size();) {
    const ssize_t count = write(to_child_.get(), line.data() + sent, line.size() - sent);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return unavailable(std::string("bench: the child does not listen: ") + std::strerror(errno));
    sent += static_cast<std::size_t>(count);
  }
  return {};
}

Result<std::string> BenchProcess::hear(Deadline deadline) {
  for (;;) {
    if (const std::size_t end = heard_.find('\n'); end != std::string::npos) {
      std::string line = heard_.substr(0, end);
      heard_.erase(0, end + 1);
      return line;
    }
    if (heard_.size() > most_line_bytes) return internal_error("bench: the child talks without end");
    if (paused()) return cancelled("bench: paused");
    if (interrupted_ != nullptr && interrupted_->load()) return cancelled("bench: interrupted");
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline.left()).count();
    if (deadline.passed()) return timed_out("bench: no answer in time");
    pollfd waited[] = {{from_child_.get(), POLLIN, 0}, {pauses_.get(), POLLIN, 0}};
    if (poll(waited, 2, static_cast<int>(std::clamp<std::int64_t>(left + 1, 1, 1000))) <= 0) continue;
    if (waited[0].revents == 0) continue;
    char bytes[4096];
    const ssize_t count = read(from_child_.get(), bytes, sizeof bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return device_lost("bench: the process ended");
    heard_.append(bytes, static_cast<std::size_t>(count));
  }
}

Result<std::string> BenchProcess::hear_answer(std::chrono::nanoseconds limit) {
  for (;;) {
    auto line = hear(Deadline::after(prepares_ ? std::max(limit, time_to_prepare) : limit));
    if (!line || (*line != bench_preparing && *line != bench_prepared)) return line;
    prepares_ = *line == bench_preparing;
  }
}

std::string BenchProcess::stop(std::chrono::nanoseconds grace) {
  pid_t pid = -1;
  bool stands = false;
  {
    const std::lock_guard lock(mutex_);
    std::swap(pid, pid_);
    stands = paused_;
  }
  if (pid < 0) return "not started";
  to_child_ = UniqueFd();
  from_child_ = UniqueFd();
  int status = 0;
  pid_t answer = 0;
  for (const Deadline deadline = Deadline::after(grace); answer == 0 && !stands && !deadline.passed();) {
    answer = waitpid(pid, &status, WNOHANG);
    if (answer == 0) usleep(5000);
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

Result<VariantSamples> BenchProcess::measure(std::string_view variant, std::uint32_t runs,
                                             std::chrono::nanoseconds limit) noexcept {
  if (pid_ < 0) {
    if (Status status = start(); !status.ok()) return status;
  }
  // What a pause broke off ends before anything else is asked, and is nobody's: part of its time the child stood still.
  Result<std::string> line = std::string();
  while (owed_ > 0 && line) {
    line = hear_answer(limit);
    if (line) --owed_;
  }
  if (line) {
    const Status said = say(std::string(variant) + "\t" + std::to_string(runs) + "\n");
    if (said.ok()) ++owed_;
    line = said.ok() ? hear_answer(limit) : Result<std::string>(device_lost(said.message));
    if (line) --owed_;
  }
  if (line) return answer_of(*line);
  Status failure = std::move(line).error();
  if (failure.code == StatusCode::cancelled) return failure;
  const std::string how = stop(failure.code == StatusCode::device_lost ? time_to_crash : time_to_leave);
  end_ = how;
  if (prepares_) {  // no variant has run yet: none is to blame
    const bool hung = failure.code == StatusCode::timeout;
    return unavailable("bench: no reference was made" + (hung ? " in time" : ": the process " + how));
  }
  if (failure.code == StatusCode::device_lost) failure.message = "bench: the process " + how;
  if (failure.code == StatusCode::timeout) {
    failure.message = "bench: hung for " +
                      std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(limit).count()) + " ms";
  }
  return failure;
}

}  // namespace kiln
