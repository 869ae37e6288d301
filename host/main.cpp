// The `kiln` command: parses, hands over to a verb, and leaves with its exit status.
#include "console.hpp"
#include "options.hpp"
#include "verbs/verbs.hpp"

#include <kiln/clock.hpp>
#include <kiln/runtime.hpp>
#include <kiln/version.hpp>

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <string>

namespace {

int dispatch(const kiln::host::Options& options, std::uint64_t started_ns) {
  using namespace kiln::host;
  switch (options.verb) {
    case Verb::help:
      return emit(options.help_text, options.output).ok() ? exit_done : exit_job_failed;
    case Verb::version:
      return emit("kiln " + std::string(kiln::version) + "\n", options.output).ok() ? exit_done : exit_job_failed;
    case Verb::run:
      return run(options, started_ns);
    case Verb::devices:
      return devices(options);
    case Verb::plugins:
      return plugins(options);
    case Verb::config_check:
      return config_check(options);
    case Verb::config_show:
      return config_show(options);
    case Verb::selector_show:
      return selector_show(options);
    case Verb::selector_explain:
      return selector_explain(options);
    case Verb::selector_reset:
      return selector_reset(options);
    case Verb::selector_replay:
      return selector_replay(options);
    case Verb::cache_stats:
      return cache_stats(options);
    case Verb::cache_list:
      return cache_list(options);
    case Verb::cache_inspect:
      return cache_inspect(options);
    case Verb::cache_release:
      return cache_release(options);
    case Verb::cache_verify:
      return cache_verify(options);
    case Verb::cache_prune:
      return cache_prune(options);
    case Verb::cache_warm:
      return cache_warm(options);
    case Verb::cache_clear:
      return cache_clear(options);
    case Verb::tune:
      return tune(options);
    case Verb::tune_audit:
      return tune_audit(options);
    case Verb::tune_export:
      return tune_export(options);
    case Verb::tune_import:
      return tune_import(options);
    case Verb::tune_push:
      return tune_push(options);
    case Verb::tune_pull:
      return tune_pull(options);
    case Verb::cache_explain:
      return cache_explain(options);
    case Verb::cache_persist:
      return cache_persist(options);
    case Verb::cache_export:
      return cache_export(options);
    case Verb::cache_import:
      return cache_import(options);
    case Verb::cache_key_create:
      return cache_key_create(options);
    case Verb::cache_key_trust:
      return cache_key_trust(options);
    case Verb::cache_key_revoke:
      return cache_key_revoke(options);
    case Verb::cache_key_list:
      return cache_key_list(options);
    case Verb::cache_push:
      return cache_push(options);
    case Verb::cache_pull:
      return cache_pull(options);
    case Verb::cache_remote_status:
      return cache_remote_status(options);
    case Verb::cache_layer_create:
      return cache_layer_create(options);
    case Verb::cache_bake:
      return cache_bake(options);
    case Verb::kernel_build:
      return kernel_build(options);
    case Verb::pm4_dump:
      return pm4_dump(options);
    case Verb::simulate:
      return simulate(options);
    case Verb::report:
      return report(options);
    case Verb::bench:
      return bench(options);
    case Verb::bench_compare:
      return bench_compare(options);
    case Verb::bench_table:
      return bench_table(options);
    case Verb::invalid:
      break;
  }
  return exit_usage;
}

// Drivers' compilers overflow a small stack, which ends the process. Threads have the size of the first limit.
kiln::Status raise_stack_limit() {
  constexpr rlim_t least = 256 << 10, usual = 8 << 20;
  rlimit limit{};
  if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= least) return {};
  const rlim_t most = std::min(limit.rlim_max, usual);
  if (most < least) {
    return kiln::unavailable("the limit of this process on the stack (" + std::to_string(most >> 10) +
                             " KiB) is below " + std::to_string(least >> 10) + " KiB. Raise it (ulimit -s)");
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
    status = dispatch(*options, started_ns);
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
