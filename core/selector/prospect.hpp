// Prospect: one candidate as a learning selector sees it: what it is expected to cost, and on what evidence.
//
// Thread-safety: a value. Ownership: borrows its device for the call.
#pragma once

#include "selector/model/performance_model.hpp"

#include <kiln/device_selector.hpp>

#include <span>
#include <string>
#include <vector>

namespace kiln::selector {

struct Prospect {
  const DeviceInfo* device = nullptr;
  Estimate run;
  double queue_ns = 0;
  double build_ns = 0;  // where its program is cold and the cost is known, else 0
  std::uint32_t looks = 0;

  double fixed_ns() const noexcept { return queue_ns + build_ns; }
  double run_ns() const noexcept;   // infinite where nothing is known
  double cost_ns() const noexcept;  // fixed and run
  // "cpu: 0.48 ms expected (12 runs)"
  std::string text() const;
};

std::vector<Prospect> prospects_of(const PerformanceModel& model, const ShapeBucket& bucket,
                                   std::span<const Candidate> candidates);

// The chosen one first, the others in the order of the candidates.
std::string text_of(std::span<const Prospect> prospects, std::size_t chosen);

}  // namespace kiln::selector
