// ModelStore: the performance model on disk: <cache>/selector.json, readable by its owner alone.
//
// Thread-safety: none; one thread at a time. Ownership: owns nothing but its path; a file appears complete or not at
// all. A damaged file or record is left out with a log line that says why; a folder that cannot be written makes it
// memory only, said once. Two processes may share a folder: the last one to write wins.
//
// Format, schema 1: {"schema": 1, "arms": [{"operation", "device", "driver", "shape": text,
//   "mean", "variance": of the natural logarithm of nanoseconds, "count", "log_flops", "looks", "used"}]}
#pragma once

#include "selector/model/performance_model.hpp"

#include <kiln/log.hpp>

#include <filesystem>
#include <map>

namespace kiln::selector {

class ModelStore {
 public:
  // An empty folder: memory only.
  ModelStore(const std::filesystem::path& folder, Log log);

  void load(PerformanceModel& into);
  void save(const std::map<ArmKey, Arm>& arms);

 private:
  void give_up(const Status& status);

  std::filesystem::path file_;  // empty: memory only
  Log log_;
};

}  // namespace kiln::selector
