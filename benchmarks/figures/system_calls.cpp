#include "figures/system_calls.hpp"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <stdexcept>

namespace kiln::bench {
namespace {

// A call that nothing makes with this argument marks a span's ends.
constexpr long mark = -770017;
constexpr long of_begin = 1, of_end = 2;
constexpr int cannot_be_traced = 77;

[[noreturn]] void be_traced(const std::function<void(const SystemCallSpan&)>& work) {
  if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(cannot_be_traced);
  raise(SIGSTOP);
  try {
    work(SystemCallSpan());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "counted work: %s\n", error.what());
    _exit(1);
  }
  _exit(0);
}

// The child is stopped where a call begins or ends.
class Counter {
 public:
  void look(pid_t pid) {
    __ptrace_syscall_info info{};
    if (ptrace(static_cast<__ptrace_request>(PTRACE_GET_SYSCALL_INFO), pid, sizeof info, &info) <= 0) return;
    if (info.op != PTRACE_SYSCALL_INFO_ENTRY) return;
    const bool marks = info.entry.nr == SYS_getpgid && static_cast<int>(info.entry.args[0]) == static_cast<int>(mark);
    if (!marks) {
      ++calls_;
    } else if (info.entry.args[1] == static_cast<std::uint64_t>(of_begin)) {
      calls_ = 0;
    } else {
      spans.push_back(calls_);
    }
  }
  std::vector<std::uint64_t> spans;

 private:
  std::uint64_t calls_ = 0;
};

int next_stop(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace

void SystemCallSpan::begin() const { syscall(SYS_getpgid, mark, of_begin); }
void SystemCallSpan::end() const { syscall(SYS_getpgid, mark, of_end); }

std::optional<std::vector<std::uint64_t>> count_system_calls(const std::function<void(const SystemCallSpan&)>& work,
                                                             std::string& why) {
  std::fflush(nullptr);  // or the child would write it again
  const pid_t pid = fork();
  if (pid < 0) throw std::runtime_error(std::string("fork: ") + std::strerror(errno));
  if (pid == 0) be_traced(work);
  Counter counter;
  int status = next_stop(pid);
  if (WIFSTOPPED(status)) {
    ptrace(PTRACE_SETOPTIONS, pid, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
    long deliver = 0;
    while (!WIFEXITED(status) && !WIFSIGNALED(status)) {
      if (ptrace(PTRACE_SYSCALL, pid, nullptr, deliver) != 0) break;
      status = next_stop(pid);
      deliver = 0;
      if (!WIFSTOPPED(status)) continue;
      if (WSTOPSIG(status) == (SIGTRAP | 0x80)) {
        counter.look(pid);
      } else {
        deliver = WSTOPSIG(status);
      }
    }
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == cannot_be_traced) {
    why = "system calls: this process may not trace its children";
    return std::nullopt;
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) throw std::runtime_error("the counted work failed");
  return counter.spans;
}

}  // namespace kiln::bench
