#include "core/cache/faults/with_fault.hpp"

#include "core/cache/faults/asked_work.hpp"
#include "core/cache/process/shared.hpp"

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <stdexcept>

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

CallFilter filter_for(int call) {
  CallFilter filter;
  if (call >= 0) return filter.ask(call);
  for (const long number : never_asked_about) filter.make(number);
  return filter;
}

[[noreturn]] void in_child_process(const Fault& fault, const std::function<std::string()>& work, Report& report) {
  const auto on_call = [&fault, &report, seen = 0](const seccomp_data& call, seccomp_notif_resp& answer) mutable {
    const std::size_t made = report.made.fetch_add(1);
    if (made < report.calls.size()) report.calls[made] = call.nr;
    if (call.nr != fault.call || ++seen != fault.when) return;
    answer.flags = 0;
    answer.error = -fault.error;
  };
  const OtherCalls others = fault.call >= 0 ? OtherCalls::made : OtherCalls::asked;
  const AskedEnd end = asked_work(filter_for(fault.call), others, on_call, work);
  put(report.why_not, end.why_not);
  put(report.said, end.said);
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
