// RunStatistics: the measurements of one job's runs, and their median field by field.
//
// Thread-safety: none; one job's own. Ownership: values.
#pragma once

#include <kiln/measurement.hpp>

#include <cstdint>
#include <optional>
#include <vector>

namespace kiln {

class RunStatistics {
 public:
  void add(const Measurement& measurement) { runs_.push_back(measurement); }

  // REQUIRES: at least one run was added. Of an even number of runs, the lower of the two in the middle: a time that
  // was measured, not a mean of two.
  Measurement median() const;
  // The first run of its program in this process; nullopt where that was earlier.
  std::optional<Measurement> first() const;
  // Of the others, which found everything generated; nullopt where there was none.
  std::optional<Measurement> steady_median() const;
  std::uint64_t wall_min_ns() const;
  std::uint64_t wall_max_ns() const;

 private:
  std::vector<Measurement> runs_;
};

}  // namespace kiln
