#include "runtime/job/run_statistics.hpp"

#include <algorithm>
#include <iterator>

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

// REQUIRES: there is one.
Measurement median_of(const std::vector<Measurement>& runs) {
  Measurement median = runs.front();
  for (const Field field : {&Measurement::queue_ns, &Measurement::build_ns, &Measurement::upload_ns,
                            &Measurement::device_ns, &Measurement::readback_ns, &Measurement::wall_ns}) {
    median.*field = median_of(runs, field);
  }
  return median;
}

}  // namespace

Measurement RunStatistics::median() const { return median_of(runs_); }

std::optional<Measurement> RunStatistics::first() const {
  const auto first = std::ranges::find_if(runs_, &Measurement::first_run);
  return first == runs_.end() ? std::nullopt : std::optional(*first);
}

std::optional<Measurement> RunStatistics::steady_median() const {
  std::vector<Measurement> steady;
  std::ranges::remove_copy_if(runs_, std::back_inserter(steady), &Measurement::first_run);
  return steady.empty() ? std::nullopt : std::optional(median_of(steady));
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
