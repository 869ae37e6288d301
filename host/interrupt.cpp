#include "interrupt.hpp"

#include <unistd.h>
#include <csignal>

namespace kiln::host {
namespace {

// The one exception to "no mutable globals": a signal handler can reach nothing else.
std::atomic<bool> flag{false};
volatile std::sig_atomic_t received = 0;

void on_signal(int number) {
  received = number;
  flag.store(true);
  std::signal(number, SIG_DFL);  // the next one ends the process
}

}  // namespace

void install_interrupt_handlers() {
  struct sigaction action = {};
  action.sa_handler = on_signal;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

const std::atomic<bool>& interrupted() noexcept { return flag; }

void end_by_signal() {
  const int number = received;
  std::signal(number, SIG_DFL);
  std::raise(number);
  _exit(128 + number);
}

}  // namespace kiln::host
