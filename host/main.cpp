// The `kiln` command: parses, hands over to a verb, and leaves with its exit status.
#include "console.hpp"
#include "options.hpp"

#include <kiln/clock.hpp>
#include <kiln/process_limits.hpp>

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <string>

namespace {

// Drivers' compilers overflow a small stack, which ends the process. Threads have the size of the first limit.
kiln::Status raise_stack_limit() {
  constexpr rlim_t least = 256 << 10, usual = 8 << 20;
  rlimit limit{};
  if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= least) return {};
  const rlim_t most = std::min(limit.rlim_max, usual);
  if (most < least) {
    return kiln::unavailable("stack limit of this process is " + std::to_string(most >> 10) +
                             " KiB, expected at least " + std::to_string(least >> 10) +
                             " KiB. Raise the limit (ulimit -s)");
  }
  limit.rlim_cur = most;
  pthread_attr_t threads;
  if (setrlimit(RLIMIT_STACK, &limit) != 0 || pthread_attr_init(&threads) != 0) return {};
  if (pthread_attr_setstacksize(&threads, most) == 0) pthread_setattr_default_np(&threads);
  pthread_attr_destroy(&threads);
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t started_ns = kiln::now_ns();
  if (const kiln::Status status = raise_stack_limit(); !status.ok()) {
    kiln::host::complain(status.message);
    return kiln::host::exit_job_failed;
  }
  kiln::prefer_roomy_heaps();
  // A closed pipe and a limit on the size of files are errors of the write, reported like any other.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  int status = kiln::host::exit_usage;
  try {
    auto options = kiln::host::parse_options(argc, argv);
    if (!options) {
      kiln::host::complain(options.error().message);
      return status;
    }
    options->started_ns = started_ns;
    status = options->action(*options);
  } catch (...) {
    std::fprintf(stderr, "kiln: %s\n", kiln::caught().message.c_str());
    status = kiln::host::exit_job_failed;
  }
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  // Everything of ours is flushed and destroyed; the exit handlers of the drivers' compilers cost milliseconds and save
  // nothing. Sanitizer builds leave by the normal way, so that leaks are seen.
  std::fflush(nullptr);
  _exit(status);
#endif
  return status;
}
