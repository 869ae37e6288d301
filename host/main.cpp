// The `kiln` command: parses, hands over to a verb, and leaves with its exit status.
#include "exit_status.hpp"
#include "options.hpp"
#include "verbs/verbs.hpp"

#include <kiln/clock.hpp>
#include <kiln/runtime.hpp>
#include <kiln/version.hpp>

#include <unistd.h>
#include <csignal>
#include <cstdio>

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
    case Verb::cache_explain:
      return cache_explain(options);
    case Verb::cache_persist:
      return cache_persist(options);
    case Verb::cache_export:
      return cache_export(options);
    case Verb::cache_import:
      return cache_import(options);
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

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t started_ns = kiln::now_ns();
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
