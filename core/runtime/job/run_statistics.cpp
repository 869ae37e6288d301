#include "runtime/job/run_statistics.hpp"

#include <algorithm>

namespace kiln {
namespace {

using Field = std::uint64_t Measurement::*;

std::uint64_t median_of(const std::vector<Measurement>& runs, Field field) {
  std::vector<std::uint64_t> values;
  values.reserve(runs.size());
  for (const Measurement& run : runs) values.push_back(run.*field);
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

Measurement RunStatistics::median() const {
  Measurement median = runs_.front();
  for (const Field field : {&Measurement::queue_ns, &Measurement::build_ns, &Measurement::upload_ns,
                            &Measurement::device_ns, &Measurement::readback_ns, &Measurement::wall_ns}) {
    median.*field = median_of(runs_, field);
  }
  return median;
}

std::uint64_t RunStatistics::wall_min_ns() const {
  return std::min_element(runs_.begin(), runs_.end(),
                          [](const Measurement& a, const Measurement& b) { return a.wall_ns < b.wall_ns; })
      ->wall_ns;
}

std::uint64_t RunStatistics::wall_max_ns() const {
  return std::max_element(runs_.begin(), runs_.end(),
                          [](const Measurement& a, const Measurement& b) { return a.wall_ns < b.wall_ns; })
      ->wall_ns;
}

}  // namespace kiln
