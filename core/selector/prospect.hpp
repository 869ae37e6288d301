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
  double build_ns = 0;  // where its program is cold and the cost is known, with a first run's extra; else 0
  double uses = 1;      // runs of this bucket that a build is expected to serve: as many again as there were
  std::uint32_t repeat = 1;
  bool cold = false;
  std::uint32_t looks = 0;

  // A run's share of what has to be waited for once.
  double fixed_ns() const noexcept { return queue_ns / repeat + build_ns / uses; }
  double run_ns() const noexcept;   // transfer and run; infinite where nothing is known
  double cost_ns() const noexcept;  // fixed and run
  // What this very job would take: nothing is shared with later ones. Infinite where nothing rests on runs.
  double now_ns() const noexcept;
  bool needs_compiler() const noexcept { return cold && device->serializes; }
  // Predicted to be so much slower than `best_ns` that it is tried once at most.
  bool hopeless(double best_ns) const noexcept { return cost_ns() > 10 * best_ns; }
  // "cpu: 0.48 ms expected (12 runs)"
  std::string text() const;
  CandidateCost figures() const;
};

// jobs: runs of the bucket seen so far in this process, this job's included.
std::vector<Prospect> prospects_of(const PerformanceModel& model, const ShapeBucket& bucket,
                                   std::span<const Candidate> candidates, const JobTerms& terms, std::uint64_t jobs);

// The least cost among those with an estimate that rests on runs; infinite where there is none.
double best_cost_ns(std::span<const Prospect> prospects) noexcept;

// The chosen one first, the others in the order of the candidates.
std::string text_of(std::span<const Prospect> prospects, std::size_t chosen);

std::string duration_text(double ns);            // "0.48 ms", "2.1 s"
std::string evidence_text(const Estimate& run);  // "12 runs"

}  // namespace kiln::selector
