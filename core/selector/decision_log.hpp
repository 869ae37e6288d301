// DecisionLog: records every decision with its estimates and outcome, to evaluate other policies on it.
//
// One JSON object per line in <cache>/selector.log. At half of the configured size it replaces selector.log.1. Several
// processes may write: a line is one write(2) at the end of the file.
//   {"decision": id, "bucket", "ground", "chosen": index, "repeat", "candidates": [{"device", "fixed_ns", "log_ns",
//    "deviation", "runs"} or {"device"} without an estimate], "options": [index], "propensities": [share]}
//   {"outcome": id, "ns", "unfit": "fit" or the reason}
// Thread-safety: none; the selector locks. Ownership: owns the open file.
#pragma once

#include "selector/chooser.hpp"
#include "selector/sample_filter.hpp"

#include <kiln/buffer.hpp>
#include <kiln/log.hpp>
#include <kiln/selector_admin.hpp>
#include <kiln/status.hpp>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace kiln::selector {

inline constexpr const char* decision_log_file = "selector.log";
inline constexpr const char* older_decision_log_file = "selector.log.1";

class DecisionLog {
 public:
  // An empty folder disables recording.
  DecisionLog(const std::filesystem::path& folder, std::uint64_t most_bytes, Log log);

  bool enabled() const noexcept { return !file_.empty(); }
  void decided(const ShapeBucket& bucket, std::span<const Prospect> prospects, const Decision& decision,
               const std::vector<double>& propensities);
  // Records a run of the calling thread's last decision, if it was for that bucket and device: one thread runs a job.
  void ended(const ShapeBucket& bucket, const DeviceInfo& device, double ns, Unfit unfit);

 private:
  struct Pending {
    std::string id, bucket, device;
    std::uint32_t runs;  // not yet ended
  };

  void write(std::string line);
  Status open();
  Status rotate_where_full();

  std::filesystem::path file_;
  std::uint64_t most_bytes_;
  Log log_;
  UniqueFd fd_;
  std::string process_;  // makes ids unique among processes
  std::uint64_t next_ = 0;
  std::map<std::thread::id, Pending> pending_;
};

// Recorded decisions with their outcomes, read from a log.
//
// Thread-safety: pure but for reading. Ownership: values.

struct RecordedOption {
  std::string device;
  Option option;
  double propensity = 0;
};

struct RecordedDecision {
  std::string bucket;
  std::string ground;
  std::string chosen_device;
  std::vector<RecordedOption> options;  // of a policy's decision
  std::size_t chosen = 0;               // among them
  std::vector<double> fit_ns;           // of the runs that the sample filter accepts
};

struct RecordedLog {
  std::vector<RecordedDecision> decisions;
  std::vector<RejectedRecord> rejected;
};

// not_found: the file does not exist. Invalid lines are returned in `rejected` with the reason.
Result<RecordedLog> read_decisions(const std::filesystem::path& log);

}  // namespace kiln::selector
