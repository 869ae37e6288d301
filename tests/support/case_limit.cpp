#include "support/case_limit.hpp"

#include "support/test_length.hpp"

#include <dirent.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

namespace kiln::test {
namespace {

// All above the constructor runs in a handler of signals: no allocation, no lock.

// The longest case of the short form takes half a minute. A machine that does other work takes several times as long.
long usual_seconds() { return is_long() ? 1500 : is_sanitized ? 600 : 240; }
constexpr std::size_t most_frames = 64;

int signal_of_limit() { return SIGRTMAX - 3; }
int signal_of_stack() { return SIGRTMAX - 4; }

char name_of_case[256];
std::atomic<long> limit_seconds{0};
std::atomic<int> stacks_printed{0};

void print(const char* text) {
  for (std::size_t left = std::strlen(text); left > 0;) {
    const ssize_t count = write(STDERR_FILENO, text, left);
    if (count <= 0) return;
    text += count;
    left -= static_cast<std::size_t>(count);
  }
}

void print_number(long number) {
  char digits[24];
  char* at = digits + sizeof digits;
  *--at = '\0';
  for (; number > 9; number /= 10) *--at = static_cast<char>('0' + number % 10);
  *--at = static_cast<char>('0' + number);
  print(at);
}

// A path of up to four parts: /proc/PID/task/…
struct Path {
  char text[128] = "";
  Path& operator<<(const char* part) {
    std::strncat(text, part, sizeof text - std::strlen(text) - 1);
    return *this;
  }
  Path& operator<<(long number) {
    char digits[24];
    char* at = digits + sizeof digits;
    *--at = '\0';
    for (; number > 9; number /= 10) *--at = static_cast<char>('0' + number % 10);
    *--at = static_cast<char>('0' + number);
    return *this << at;
  }
};

// The first bytes of a file of /proc, without its line end; the ends of a command line's words become spaces.
struct Text {
  char bytes[512] = "";
  explicit Text(const Path& path) {
    const int file = open(path.text, O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    const ssize_t count = std::max<ssize_t>(read(file, bytes, sizeof bytes - 1), 0);
    close(file);
    for (ssize_t i = 0; i < count; ++i) {
      if (bytes[i] == '\0' || bytes[i] == '\n') bytes[i] = ' ';
    }
    bytes[count] = '\0';
  }
};

struct Entry {  // as getdents64 writes it
  std::uint64_t inode;
  std::int64_t offset;
  unsigned short size;
  unsigned char type;
  char name[1];
};

template <class Action>
void for_each_thread(const Path& process, Action action) {
  Path folder = process;
  folder << "/task";
  const int file = open(folder.text, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return;
  alignas(Entry) char entries[2048];
  for (long count; (count = syscall(SYS_getdents64, file, entries, sizeof entries)) > 0;) {
    for (long at = 0; at < count;) {
      Entry entry;
      std::memcpy(&entry, entries + at, offsetof(Entry, name));
      const char* name = entries + at + offsetof(Entry, name);
      if (*name != '.') action(std::strtol(name, nullptr, 10));
      at += entry.size;
    }
  }
  close(file);
}

void print_state(const Path& process, long thread) {
  const auto file = [&](const char* name) { return Text(Path(process) << "/task/" << thread << name); };
  print("\n-- thread ");
  print_number(thread);
  print(" ");
  print(file("/comm").bytes);
  print("in system call ");
  print(file("/syscall").bytes);
  print("\n");
}

void print_stack(int) {
  void* frames[most_frames];
  const int count = backtrace(frames, most_frames);
  backtrace_symbols_fd(frames, count, STDERR_FILENO);
  stacks_printed.fetch_add(1);
}

void wait_for_stack(int before) {
  for (int i = 0; i < 100 && stacks_printed.load() == before; ++i) {
    const timespec pause{0, 10'000'000};
    nanosleep(&pause, nullptr);
  }
  if (stacks_printed.load() == before) print("it blocks signals: no stack\n");
}

[[noreturn]] void end_process(int) {
  print("\ntest case '");
  print(name_of_case);
  print("' has not ended after ");
  print_number(limit_seconds.load());
  print(" s (KILN_TEST_CASE_LIMIT). Its threads; addr2line -e names what has no name:\n");
  const Path own = Path() << "/proc/self";
  const long this_thread = syscall(SYS_gettid);
  for_each_thread(own, [&](long thread) {
    print_state(own, thread);
    if (thread == this_thread) return print_stack(0);
    const int before = stacks_printed.load();
    if (syscall(SYS_tgkill, getpid(), thread, signal_of_stack()) == 0) wait_for_stack(before);
  });
  for_each_thread(own, [&](long thread) {
    const Text children(Path(own) << "/task/" << thread << "/children");
    for (const char* at = children.bytes; *at >= '0' && *at <= '9';) {
      char* end = nullptr;
      end_child(static_cast<pid_t>(std::strtol(at, &end, 10)));
      at = *end == ' ' ? end + 1 : end;
    }
  });
  print("\nFAILED: test case '");
  print(name_of_case);
  print("': it ran too long\n");
  _exit(1);
}

// Whether a thread beside this one runs, and so may be inside malloc(). Counts the others.
bool another_runs(int& others) {
  const Path own = Path() << "/proc/self";
  const long this_thread = syscall(SYS_gettid);
  bool runs = false;
  others = 0;
  for_each_thread(own, [&](long thread) {
    if (thread == this_thread) return;
    ++others;
    const Text stat(Path(own) << "/task/" << thread << "/stat");
    const char* const name_end = std::strrchr(stat.bytes, ')');
    if (name_end != nullptr && (name_end[2] == 'R' || name_end[2] == 'D')) runs = true;
  });
  return runs;
}

// Before each fork(). GCC 12's address sanitizer does not hold its allocator's locks across fork(): where another
// thread has one, the child waits for it for ever.
void await_sleeping_threads() {
  int others = 0;
  for (int i = 0, asleep = 0; i < 500 && asleep < 3; ++i) {
    asleep = another_runs(others) ? 0 : asleep + 1;
    if (others == 0) return;
    const timespec pause{0, 1'000'000};
    nanosleep(&pause, nullptr);
  }
}

void handle(int number, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigfillset(&action.sa_mask);
  sigaction(number, &action, nullptr);
}

}  // namespace

void end_child(pid_t child) noexcept {
  const Path process = Path() << "/proc/" << child;
  print("\n-- child process ");
  print_number(child);
  print(" ");
  print(Text(Path(process) << "/cmdline").bytes);
  for_each_thread(process, [&](long thread) { print_state(process, thread); });
  kill(child, SIGKILL);
}

long limit_under_load(long seconds, double load, long cores) noexcept {
  return static_cast<long>(static_cast<double>(seconds) * std::clamp(load / static_cast<double>(cores), 1.0, 4.0));
}

CaseLimit::CaseLimit() {
  if (is_sanitized) pthread_atfork(await_sleeping_threads, nullptr, nullptr);
  const char* value = std::getenv("KILN_TEST_CASE_LIMIT");
  seconds_ = value != nullptr ? std::strtol(value, nullptr, 10) : usual_seconds();
  is_usual_ = value == nullptr;
  if (seconds_ <= 0) return;
  void* frame = nullptr;
  backtrace(&frame, 1);  // loads what it needs, which a handler may not
  handle(signal_of_limit(), end_process);
  handle(signal_of_stack(), print_stack);
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = signal_of_limit();
  if (timer_create(CLOCK_MONOTONIC, &event, &timer_) != 0) throw std::runtime_error("timer_create failed");
}

void CaseLimit::begin(const std::string& name) noexcept {
  std::strncpy(name_of_case, name.c_str(), sizeof name_of_case - 1);
  double load = 0;
  if (is_usual_) (void)getloadavg(&load, 1);
  limit_seconds = limit_under_load(seconds_, load, sysconf(_SC_NPROCESSORS_ONLN));
  set(limit_seconds);
}

void CaseLimit::end() noexcept { set(0); }

void CaseLimit::set(long seconds) noexcept {
  if (seconds_ <= 0) return;
  itimerspec when{};
  when.it_value.tv_sec = seconds;
  timer_settime(timer_, 0, &when, nullptr);
}

}  // namespace kiln::test
