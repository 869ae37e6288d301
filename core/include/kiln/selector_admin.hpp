// What the learning selector has learned, from outside: to look at, to reset, and its recorded decisions to judge
// policies by.
//
// Thread-safety: free functions of what lies in the folder; any thread, any process. Ownership: values. A process that
// is learning meanwhile keeps what it learned itself.
#pragma once

#include <kiln/config.hpp>
#include <kiln/status.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace kiln {

// A record of the model's file that is not used: which validator refused it, and both sides of the mismatch.
struct RejectedRecord {
  std::size_t line = 0;
  std::string validator;  // "checksum", "json", "field mean", …
  std::string expected;
  std::string found;

  std::string text() const;  // "line 7: checksum: expected 0123…, found 4567…"
};

struct LearnedArm {
  std::string operation, device, driver, shape;
  std::uint64_t runs = 0;
  double run_ns = 0;     // expected, transfer included; 0: no steady run yet
  double deviation = 0;  // of the natural logarithm of single runs
  double transfer_ns = 0;
  std::uint64_t first_runs = 0;
  double first_ns = 0;
  std::uint32_t looks = 0;
  std::uint32_t alarms = 0;   // how often the device was noticed to have changed
  std::uint64_t used_us = 0;  // microseconds since 1970
};

struct SelectorModel {
  std::filesystem::path file;
  bool exists = false;
  std::vector<LearnedArm> arms;                      // by operation, device, driver, shape
  std::map<std::string, std::uint64_t> not_learned;  // runs, by reason
  std::vector<RejectedRecord> rejected;
};

// io where the file is there and cannot be read; what is wrong inside it stands in `rejected`.
Result<SelectorModel> read_selector_model(const std::filesystem::path& cache_directory);

struct SelectorReset {
  std::size_t removed = 0;  // arms
  std::size_t kept = 0;
};

// device: an id; empty: all. Records that were refused go too. io, or unavailable where another process holds the
// model.
Result<SelectorReset> reset_selector_model(const std::filesystem::path& cache_directory, const std::string& device);

// How another policy would have fared on recorded decisions. A figure is a time a decision.
struct PolicyVerdict {
  std::string policy;
  double mean_ns = 0;  // estimated
  double low_ns = 0;   // 95 % of bootstrap resamples of the decisions lie within
  double high_ns = 0;
  double agreement = 0;  // share of decisions in which it would have chosen what was chosen
};

struct SelectorReplay {
  std::size_t decisions = 0;  // recorded
  std::size_t judged = 0;     // made by a policy, with an outcome that was fit to learn from
  std::size_t looks = 0;      // made for want of knowledge, by every policy alike: not judged
  std::size_t without_outcome = 0;
  double recorded_mean_ns = 0;  // what the recorded choices took, over those judged
  std::vector<PolicyVerdict> policies;
  std::vector<RejectedRecord> rejected;
};

// log: the file, or the folder that holds it. not_found: there is none.
Result<SelectorReplay> replay_selector_log(const std::filesystem::path& log, const SelectorConfig& config);

}  // namespace kiln
