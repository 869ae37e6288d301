#include "interrupt.hpp"

#include <poll.h>
#include <time.h>
#include <unistd.h>
#include <csignal>

namespace kiln::host {
namespace {

// The one exception to "no mutable globals": a signal handler can reach nothing else.
std::atomic<bool> flag{false};
volatile std::sig_atomic_t received = 0;
timer_t limit{};
volatile std::sig_atomic_t has_limit = 0;

void set_limit(std::chrono::nanoseconds after) {
  if (has_limit == 0) return;
  itimerspec at{};
  at.it_value.tv_sec = static_cast<time_t>(after.count() / 1'000'000'000);
  at.it_value.tv_nsec = static_cast<long>(after.count() % 1'000'000'000);
  timer_settime(limit, 0, &at, nullptr);
}

// The handlers call async-signal-safe functions only.

void on_signal(int number) {
  received = number;
  flag.store(true);
  std::signal(number, SIG_DFL);  // the next one ends the process
  set_limit(longest_end);
}

void on_limit(int) {
  static constexpr char text[] =
      "kiln: interrupted: what still ran did not stop in time and was ended, without a report\n";
  pollfd errors{STDERR_FILENO, POLLOUT, 0};
  // A full pipe is not waited for.
  if (poll(&errors, 1, 0) == 1) {
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text, sizeof text - 1);
  }
  end_by_signal();
}

}  // namespace

void install_interrupt_handlers() {
  struct sigaction action = {};
  action.sa_handler = on_limit;
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGALRM;
  if (sigaction(SIGALRM, &action, nullptr) == 0 && timer_create(CLOCK_MONOTONIC, &event, &limit) == 0) has_limit = 1;
  action.sa_handler = on_signal;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

const std::atomic<bool>& interrupted() noexcept { return flag; }

void lift_interrupt_limit() noexcept { set_limit(std::chrono::nanoseconds(0)); }

void end_by_signal() {
  const int number = received;
  std::signal(number, SIG_DFL);
  std::raise(number);
  _exit(128 + number);
}

}  // namespace kiln::host
