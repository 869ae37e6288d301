// Options: the command line, parsed. The verbs and their names are a contract.
//
// Thread-safety: values.
#pragma once

#include "console.hpp"

#include <kiln/config_reader.hpp>
#include <kiln/status.hpp>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace kiln::host {

enum class Verb {
  invalid = 0,
  help,
  version,
  run,
  devices,
  plugins,
  config_check,
  config_show,
  selector_show,
  selector_explain,
  selector_reset,
  selector_replay,
  cache_stats,
  cache_list,
  cache_inspect,
  cache_release,
  cache_verify,
  cache_prune,
  cache_clear,
  cache_warm,
  cache_explain,
  cache_persist,
  cache_export,
  cache_import,
  cache_key_create,
  cache_key_trust,
  cache_key_revoke,
  cache_key_list,
  cache_push,
  cache_pull,
  cache_remote_status,
  cache_layer_create,
  cache_bake,
  tune,
  tune_audit,
  tune_export,
  tune_import,
  tune_push,
  tune_pull,
  kernel_build,
  pm4_dump,
  simulate,
  report,
  bench,
  bench_compare,
  bench_table,
};

struct TuneChoices {  // of `kiln tune`
  std::optional<std::chrono::nanoseconds> budget;
  bool exhaustive = false;
  bool again = false;
  std::uint32_t sample = 8;  // of an audit: winners
};

struct BenchChoices {  // of `kiln bench`
  bool quick = false;
  bool stable = false;
  std::optional<std::uint32_t> passes;
};

struct CacheOptions {  // each for some of the cache verbs
  std::optional<std::chrono::nanoseconds> max_age;
  std::optional<std::uint64_t> max_size;
  std::optional<std::uint32_t> top;
  bool all = false;
  bool dry_run = false;
  bool remove = false;
  bool prometheus = false;
  bool show_key = false;
  bool system = false;
  std::string trust, until, sign_with, from;
  std::vector<std::string> targets;  // --for
};

struct Options {
  Verb verb = Verb::invalid;
  std::string help_text;  // for Verb::help
  ConfigSources sources;
  std::string subject;                // what a cache verb is about: a label or a key, a file
  std::vector<std::string> subjects;  // likewise, of those that take several: labels or keys; a command's words
  CacheOptions cache;
  TuneChoices tune;
  BenchChoices bench;
  std::string device;  // --device; empty: as configured
  std::string target;  // --target; empty: not given
  std::vector<std::string> include;
  bool verify = false;
  bool verify_steps = false;  // of pipelines; then `verify` is set too
  std::optional<std::uint32_t> repeat;
  std::uint32_t jobs = 1;  // of a run: so many at one time
  bool json = false;
  std::optional<std::filesystem::path> output;
  std::optional<std::filesystem::path> trace;  // --trace
  std::string title;                           // --title; empty: not given
  bool watch = false;
  bool retry = false;  // of `kiln plugins`
  Progress progress = Progress::automatic;
};

// invalid_argument: a usage error, to be shown with status 2. Reads the environment of the process.
Result<Options> parse_options(int argc, char** argv);

}  // namespace kiln::host
