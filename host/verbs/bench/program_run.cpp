#include "verbs/bench/program_run.hpp"

#include "report/human.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <kiln/buffer.hpp>
#include <kiln/regular_file.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>

namespace kiln::host {
namespace {

struct ProgramSpawn {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  ProgramSpawn() {
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
  }
  ProgramSpawn(const ProgramSpawn&) = delete;
  ProgramSpawn& operator=(const ProgramSpawn&) = delete;
  ~ProgramSpawn() {
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
  }
};

int start_program(pid_t& pid, const std::vector<std::string>& words, const std::string& log) {
  ProgramSpawn setup;
  int error = 0;
  const auto also = [&error](int result) { error = error != 0 ? error : result; };
  also(posix_spawn_file_actions_addopen(&setup.files, 0, "/dev/null", O_RDONLY, 0));
  also(posix_spawn_file_actions_addopen(&setup.files, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600));
  also(posix_spawn_file_actions_adddup2(&setup.files, 1, 2));
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
  std::vector<std::string> copies = words;
  std::vector<char*> argv;
  for (std::string& word : copies) argv.push_back(word.data());
  argv.push_back(nullptr);
  return posix_spawn(&pid, argv.front(), &setup.files, &setup.attributes, argv.data(), environ);
}

// Ends what is left of the group, and takes the child's status.
int reap(pid_t pid) {
  kill(-pid, SIGKILL);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

// The last lines that a program said, on one line; empty where it said nothing.
std::string last_words(const std::filesystem::path& log) {
  constexpr std::size_t most = 400;
  std::string text;
  if (const Result<RegularFile> file = RegularFile::open(log)) {
    text.resize(static_cast<std::size_t>(std::min<std::uint64_t>(file->bytes(), 2 * most)));
    if (!file->read(file->bytes() - text.size(), std::as_writable_bytes(std::span(text))).ok()) text.clear();
  }
  while (!text.empty() && text.back() == '\n') text.pop_back();
  if (text.size() > most) text = "…" + text.substr(text.size() - most);
  std::ranges::replace(text, '\n', ' ');
  return text.empty() ? "; it said nothing" : "; it last said: " + visible(text);
}

Status end_of(int status, const std::filesystem::path& log) {
  if (WIFSIGNALED(status)) {
    const char* signal = sigabbrev_np(WTERMSIG(status));
    return internal_error(std::string("ended by SIG") + (signal != nullptr ? signal : "?") + last_words(log));
  }
  if (WEXITSTATUS(status) == 0) return {};
  return internal_error("ended with status " + std::to_string(WEXITSTATUS(status)) + last_words(log));
}

}  // namespace

Status run_program(const std::vector<std::string>& words, const std::filesystem::path& log, Deadline deadline,
                   const std::atomic<bool>& stop, const std::function<void()>& every_second) {
  pid_t pid = -1;
  if (const int error = start_program(pid, words, log.string()); error != 0) {
    return unavailable(words.front() + ": cannot be started: " + std::strerror(error));
  }
  const UniqueFd ended(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!ended) {
    const int error = errno;
    reap(pid);
    return unavailable(words.front() + ": cannot be waited for: " + std::strerror(error));
  }
  while (!stop.load()) {
    if (deadline.passed()) {
      reap(pid);
      return timed_out("was ended at its deadline" + last_words(log));
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline.left()).count();
    pollfd waited{ended.get(), POLLIN, 0};
    if (poll(&waited, 1, static_cast<int>(std::clamp<std::int64_t>(left + 1, 1, 1000))) > 0) {
      return end_of(reap(pid), log);
    }
    every_second();
  }
  reap(pid);
  return cancelled("was interrupted");
}

}  // namespace kiln::host
