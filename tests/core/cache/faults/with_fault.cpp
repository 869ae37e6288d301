#include "core/cache/faults/with_fault.hpp"

#include "core/cache/process/shared.hpp"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <vector>

namespace kiln::test {
namespace {

// Filled by the child. Fixed sizes: the answering thread must not allocate while the other may hold the allocator.
struct Report {
  std::array<char, 512> said{};
  std::array<char, 128> why_not{};
  std::array<int, 8192> calls{};
  std::atomic<std::size_t> made{0};
};

template <std::size_t size>
void put(std::array<char, size>& to, const std::string& text) {
  const std::size_t length = std::min(text.size(), size - 1);
  std::memcpy(to.data(), text.data(), length);
  to[length] = 0;
}

// What an allocator or a sanitizer does while it holds a lock that the answering thread may want.
constexpr std::array never_asked_about{SYS_mmap,    SYS_munmap, SYS_mprotect, SYS_mremap,
                                       SYS_madvise, SYS_brk,    SYS_futex,    SYS_sched_yield};

// From now on the kernel asks about this thread's calls of the kind, or about all. Answers where, or -1.
int ask_about(int call) {
  std::vector<sock_filter> filter{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  const auto when = [&filter](long number, unsigned answer) {
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(number), 0, 1));
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, answer));
  };
  if (call >= 0) {
    when(call, SECCOMP_RET_USER_NOTIF);
  } else {
    for (const long number : never_asked_about) when(number, SECCOMP_RET_ALLOW);
  }
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, call >= 0 ? SECCOMP_RET_ALLOW : SECCOMP_RET_USER_NOTIF));
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  return static_cast<int>(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program));
}

void answer_all(int listener, const Fault& fault, Report& report) {
  int seen = 0;
  for (;;) {
    seccomp_notif asked{};
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked) != 0) {
      if (errno == EINTR || errno == ENOENT) continue;
      return;
    }
    const std::size_t made = report.made.fetch_add(1);
    if (made < report.calls.size()) report.calls[made] = asked.data.nr;
    seccomp_notif_resp answer{};
    answer.id = asked.id;
    if (asked.data.nr == fault.call && ++seen == fault.when) {
      answer.error = -fault.error;
    } else {
      answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    }
    ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
  }
}

[[noreturn]] void in_child_process(const Fault& fault, const std::function<std::string()>& work, Report& report) {
  std::atomic<int> listener{0};  // 0: not known yet
  std::thread answering([&] {
    while (listener == 0) std::this_thread::yield();
    answer_all(listener, fault, report);
  });
  answering.detach();
  const int made = ask_about(fault.call);  // a wake-up would be asked about already, so the other thread spins
  if (made < 0) {
    put(report.why_not, std::string("seccomp: ") + std::strerror(errno));
    _exit(0);
  }
  listener = made;
  std::string said;
  try {
    said = work();
  } catch (const std::exception& error) {
    said = std::string("threw: ") + error.what();
  }
  put(report.said, said);
  _exit(0);
}

}  // namespace

FaultEnd with_fault(const Fault& fault, const std::function<std::string()>& work) {
  Shared<Report> report;
  const pid_t pid = fork();
  if (pid < 0) throw std::runtime_error("no child process");
  if (pid == 0) in_child_process(fault, work, *report);
  int status = 0;
  waitpid(pid, &status, 0);
  FaultEnd end{report->why_not.data(), report->said.data(), WIFSIGNALED(status) ? WTERMSIG(status) : 0, {}};
  const std::size_t made = std::min(report->made.load(), report->calls.size());
  end.calls.assign(report->calls.begin(), report->calls.begin() + static_cast<std::ptrdiff_t>(made));
  return end;
}

}  // namespace kiln::test
