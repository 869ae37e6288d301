// Selector administration: reads and resets the learned model, and evaluates policies on recorded decisions.
//
// Thread-safety: functions from any thread and process. They do not change the learned model in the memory of a running
// process. Ownership: values. Times are in nanoseconds unless a name has another unit.
//
//   auto model = kiln::read_selector_model(config.cache.directory);
//   if (!model) return model.error();
//   for (const kiln::LearnedArm& arm : model->arms) std::cout << arm.device << ' ' << arm.runs << '\n';
#pragma once

#include <kiln/config.hpp>
#include <kiln/status.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace [[gnu::visibility("default")]] kiln {

// A record of the model file that failed validation, with the expected and the found value.
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
  double run_ns = 0;     // expected time of a run after the first, with transfer; 0: no such run yet
  double deviation = 0;  // standard deviation of the natural logarithm of single runs
  double transfer_ns = 0;
  std::uint64_t first_runs = 0;
  double first_ns = 0;
  std::uint32_t looks = 0;
  std::uint32_t alarms = 0;   // number of detected changes of the device
  std::uint64_t used_us = 0;  // microseconds since 1970
};

struct SelectorModel {
  std::filesystem::path file;
  bool exists = false;
  std::vector<LearnedArm> arms;                      // by operation, device, driver, shape
  std::map<std::string, std::uint64_t> not_learned;  // runs, by reason
  std::vector<RejectedRecord> rejected;
};

// io: the file exists but cannot be read. Invalid records are in `rejected`.
Result<SelectorModel> read_selector_model(const std::filesystem::path& cache_directory);

struct SelectorReset {
  std::size_t removed = 0;  // arms
  std::size_t kept = 0;
};

// Removes the arms of a device and invalid records. device: an id; empty: all devices. io: file error. unavailable: another
// process has locked the model.
Result<SelectorReset> reset_selector_model(const std::filesystem::path& cache_directory, const std::string& device);

// Estimated result of another policy on recorded decisions. Times are per decision.
struct PolicyVerdict {
  std::string policy;
  double mean_ns = 0;  // estimated
  double low_ns = 0;   // 95 % interval of bootstrap resamples
  double high_ns = 0;
  double agreement = 0;  // share of decisions with the same choice
};

struct SelectorReplay {
  std::size_t decisions = 0;  // recorded
  std::size_t judged = 0;     // evaluated: made by a policy, with a valid outcome
  std::size_t looks = 0;      // exploration runs: equal for every policy, and not evaluated
  std::size_t without_outcome = 0;
  double recorded_mean_ns = 0;  // mean time of the recorded choices in the `judged` decisions
  std::vector<PolicyVerdict> policies;
  std::vector<RejectedRecord> rejected;
};

// Evaluates policies on a log. log: the file or its folder. not_found: it does not exist.
Result<SelectorReplay> replay_selector_log(const std::filesystem::path& log, const SelectorConfig& config);

}  // namespace kiln
