// Recorded decisions, read back from a log: each with its outcome.
//
// Thread-safety: pure but for reading. Ownership: values.
#pragma once

#include "selector/policy/policy.hpp"

#include <kiln/selector_admin.hpp>
#include <kiln/status.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace kiln::selector {

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
  std::vector<double> fit_ns;           // of the runs that were fit to learn from
};

struct RecordedLog {
  std::vector<RecordedDecision> decisions;
  std::vector<RejectedRecord> rejected;
};

// not_found: there is no such file. Lines that make no sense are left out, each with the reason.
Result<RecordedLog> read_decisions(const std::filesystem::path& log);

}  // namespace kiln::selector
