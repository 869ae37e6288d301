// Prospect: the expected cost of one candidate, with its evidence.
//
// Thread-safety: a value. Ownership: borrows its device for the call.
#pragma once

#include "selector/performance_model.hpp"

#include <kiln/device_selector.hpp>

#include <span>
#include <string>
#include <vector>

namespace kiln::selector {

struct Prospect {
  const DeviceInfo* device = nullptr;
  Estimate run;
  double queue_ns = 0;
  double build_ns = 0;  // with the additional time of a first run; 0: program not cold, or unknown
  double uses = 1;      // expected runs of this bucket per build: as many as there were before
  std::uint32_t repeat = 1;
  bool cold = false;
  std::uint32_t looks = 0;

  // Share of a run in the one-time waits.
  double fixed_ns() const noexcept { return queue_ns / repeat + build_ns / uses; }
  double run_ns() const noexcept;   // transfer and run; infinite: unknown
  double cost_ns() const noexcept;  // fixed and run
  // Time of this job alone, without sharing costs with later jobs. Infinite: no estimate from runs.
  double now_ns() const noexcept;
  bool needs_compiler() const noexcept { return cold && device->serializes; }
  // Whether it is predicted to be so slow that it is measured once at most.
  bool hopeless(double best_ns) const noexcept { return cost_ns() > 10 * best_ns; }
  // "cpu: 0.48 ms expected (12 runs)"
  std::string text() const;
  CandidateCost figures() const;
};

// jobs: runs of the bucket in this process, with this job.
std::vector<Prospect> prospects_of(const PerformanceModel& model, const ShapeBucket& bucket,
                                   std::span<const Candidate> candidates, const JobTerms& terms, std::uint64_t jobs);

// Returns the least cost among estimates from runs; infinite: none.
double best_cost_ns(std::span<const Prospect> prospects) noexcept;

// The chosen candidate first, the others in their order.
std::string text_of(std::span<const Prospect> prospects, std::size_t chosen);

std::string duration_text(double ns);            // "0.48 ms", "2.1 s"
std::string evidence_text(const Estimate& run);  // "12 runs"

}  // namespace kiln::selector
