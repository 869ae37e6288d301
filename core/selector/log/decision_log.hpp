// DecisionLog: every choice with what it rested on, and how it came out, so that other policies can be judged on it.
//
// One JSON object a line in <cache>/selector.log; when that is half of what the configuration allows it becomes
// selector.log.1, in place of the one before. Several processes may write: a line is one write(2) at the end.
//   {"decision": id, "bucket", "ground", "chosen": index, "repeat", "candidates": [{"device", "fixed_ns", "log_ns",
//    "deviation", "runs"} or {"device"} where nothing was known], "options": [index], "propensities": [share]}
//   {"outcome": id, "ns", "unfit": "fit" or the reason}
// Thread-safety: none; the selector locks. Ownership: owns the open file.
#pragma once

#include "selector/chooser.hpp"
#include "selector/hygiene.hpp"

#include <kiln/buffer.hpp>
#include <kiln/log.hpp>

#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace kiln::selector {

inline constexpr const char* decision_log_file = "selector.log";
inline constexpr const char* older_decision_log_file = "selector.log.1";

class DecisionLog {
 public:
  // An empty folder: nothing is recorded.
  DecisionLog(const std::filesystem::path& folder, std::uint64_t most_bytes, Log log);

  bool enabled() const noexcept { return !file_.empty(); }
  void decided(const ShapeBucket& bucket, std::span<const Prospect> prospects, const Decision& decision,
               const std::vector<double>& propensities);
  // Of the oldest decision for that bucket and device whose runs have not all ended.
  void ended(const ShapeBucket& bucket, const DeviceInfo& device, double ns, Unfit unfit);

 private:
  struct Pending {
    std::string id;
    std::uint32_t runs;  // that have not ended
  };

  void write(std::string line);
  Status open();
  Status rotate_where_full();

  std::filesystem::path file_;
  std::uint64_t most_bytes_;
  Log log_;
  UniqueFd fd_;
  std::string process_;  // tells the ids of two processes apart
  std::uint64_t next_ = 0;
  std::map<std::pair<std::string, std::string>, std::deque<Pending>> pending_;  // by bucket and device
};

}  // namespace kiln::selector
