#include "support/syscall_killer.hpp"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <set>
#include <stdexcept>

namespace kiln::test {
namespace {

constexpr int system_call_stop = SIGTRAP | 0x80;  // PTRACE_O_TRACESYSGOOD

// False: the stop is not the beginning of a call.
bool entered_call(pid_t thread, SystemCall& call) {
  __ptrace_syscall_info info{};
  if (ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof info, &info) <= 0) return false;
  if (info.op != PTRACE_SYSCALL_INFO_ENTRY) return false;
  call.number = info.entry.nr;
  for (std::size_t i = 0; i < call.arguments.size(); ++i) call.arguments[i] = info.entry.args[i];
  return true;
}

void go_on(pid_t thread, int signal) { (void)ptrace(PTRACE_SYSCALL, thread, nullptr, signal); }

// Fails a call with `error` where (argument & mask) == mask.
bool refuse(unsigned number, unsigned argument, std::uint32_t mask, std::uint32_t error) {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 4),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offsetof(seccomp_data, args) + 8 * argument)),
      BPF_STMT(BPF_ALU | BPF_AND | BPF_K, mask),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, mask, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{sizeof program / sizeof *program, program};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

}  // namespace

bool opens_nameless_file(const SystemCall& call) {
  return call.number == SYS_openat && (call.arguments[2] & O_TMPFILE) == O_TMPFILE;
}

bool refuse_nameless_files() { return refuse(SYS_openat, 2, O_TMPFILE, EOPNOTSUPP); }
bool refuse_exchange() { return refuse(SYS_renameat2, 4, RENAME_EXCHANGE, EINVAL); }
bool refuse_flush(int error) {
  const auto code = static_cast<std::uint32_t>(error);
  return refuse(SYS_fsync, 0, 0, code) && refuse(SYS_syncfs, 0, 0, code);
}

bool end_at_next_call() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{sizeof program / sizeof *program, program};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

KilledRun run_and_kill(const std::function<void()>& child, const KillPoint& point) {
  KilledRun run;
  const pid_t first = fork();
  if (first < 0) throw std::runtime_error("fork");
  if (first == 0) {
    constexpr int refused = 125;
    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(refused);
    raise(SIGSTOP);
    child();
    _exit(0);
  }
  int state = 0;
  if (waitpid(first, &state, 0) != first || !WIFSTOPPED(state)) return run;
  constexpr long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
                           PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
  if (ptrace(PTRACE_SETOPTIONS, first, nullptr, options) != 0) {
    kill(first, SIGKILL);
    waitpid(first, &state, 0);
    return run;
  }
  run.is_traced = true;
  bool counting = !point.counts_from;
  std::set<pid_t> known{first};
  go_on(first, 0);
  for (;;) {
    const pid_t thread = waitpid(-1, &state, __WALL);
    if (thread < 0 && errno == EINTR) continue;
    if (thread < 0) break;
    if (WIFEXITED(state) || WIFSIGNALED(state)) {
      known.erase(thread);
      if (thread == first) {
        run.was_killed = WIFSIGNALED(state) && WTERMSIG(state) == SIGKILL;
        if (WIFEXITED(state)) run.status = WEXITSTATUS(state);
      }
      if (known.empty()) break;
      continue;
    }
    const bool is_new = known.insert(thread).second;
    const int signal = WSTOPSIG(state);
    SystemCall call;
    if (signal == system_call_stop && entered_call(thread, call)) {
      counting = counting || point.counts_from(call);
      if (counting) {
        ++run.calls;
        if (point.at_each_call) point.at_each_call(call);
        if (run.calls == point.call) {
          for (const pid_t each : std::set<pid_t>(known)) kill(each, SIGKILL);
          continue;
        }
      }
    }
    const bool is_event = (state >> 16) != 0;
    const bool is_first_stop = is_new && signal == SIGSTOP;
    go_on(thread, signal == system_call_stop || is_event || is_first_stop ? 0 : signal);
  }
  return run;
}

}  // namespace kiln::test
