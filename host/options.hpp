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
#include <string_view>
#include <vector>

namespace kiln::host {

struct Options;
using VerbAction = int (*)(const Options&);  // answers the exit status

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
  std::string_view verb;  // as the table of verbs names it: "cache list"
  VerbAction action = nullptr;
  std::uint64_t started_ns = 0;  // now_ns() at the start of main, from which first results are counted
  std::string help_text;         // of print_help
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
