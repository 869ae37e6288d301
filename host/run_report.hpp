// The report of `kiln run`: a table for people, and the JSON of docs/json.md.
//
// Thread-safety: pure functions.
#pragma once

#include <kiln/config_reader.hpp>
#include <kiln/plugin_loader.hpp>
#include <kiln/runtime.hpp>

#include <string>
#include <vector>

namespace kiln::host {

struct JobOutcome {
  RunReport report;
  double first_result_ms = 0;  // 0: none
  std::string output;          // file; empty: none
};

struct RunOutcome {
  std::vector<JobOutcome> jobs;  // in the order of the file
  std::uint64_t total_ns = 0;    // from main() to the end of the last job
  std::uint64_t setup_ns = 0;    // part of it, until the first job starts
  CacheStats cache;
  std::uint64_t prepared = 0;
  WarmingState warming;
  std::vector<DeviceInfo> devices;
  std::vector<PluginReport> plugins;
  std::vector<ConfigProblem> problems;  // if not empty, nothing ran
  bool interrupted = false;             // before all jobs were finished
};

enum class Colour { invalid = 0, no, yes };

std::string run_json(const RunOutcome& outcome);
std::string run_table(const RunOutcome& outcome, Colour colour);

// Returns the state of the driver's own cache, from the devices that were used.
std::string driver_cache_of(const std::vector<JobOutcome>& jobs);

}  // namespace kiln::host
