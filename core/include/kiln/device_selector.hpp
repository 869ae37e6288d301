// DeviceSelector: chooses the device for a job or a pipeline and learns from measured runs.
//
// The choice minimizes queue wait + transfer + build (if cold) + run. It does not depend on the name or kind of a
// device. Times are in nanoseconds.
// Thread-safety: every method from any thread. Ownership: a call borrows its candidates.
//
//   auto choice = selector.select(spec, candidates, {});
//   if (!choice) return choice.error();
//   const kiln::DeviceInfo& device = *candidates[choice->candidate].device;
#pragma once

#include <kiln/config.hpp>
#include <kiln/device.hpp>
#include <kiln/kernel.hpp>
#include <kiln/log.hpp>
#include <kiln/measurement.hpp>
#include <kiln/trace.hpp>

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace [[gnu::visibility("default")]] kiln {

// Work with about the same run time: equal operation and kind of shape, similar FLOPs and data. Sizes are grouped by half
// octaves of direct FLOPs and octaves of bytes. Each user kernel and each pipeline has a separate bucket.
struct ShapeBucket {
  std::string operation;
  std::string family;  // "3x3 dense direct f32": shapes whose time depends on FLOPs in the same way
  std::string shape;   // family and size: "3x3 dense direct f32 @28.5/21"
  double flops = 0;    // of the work itself; 0: unknown
  double bytes = 0;    // bytes that must be moved at least once
  double saving = 1;   // Operation::saving; for a pipeline, the largest value of its steps

  ShapeBucket() = default;
  // Implicit: a spec is in one bucket. REQUIRES: validate(spec).ok().
  template <std::convertible_to<KernelSpec> Spec>
  ShapeBucket(const Spec& spec) : ShapeBucket(of(spec)) {}

 private:
  static ShapeBucket of(const KernelSpec& spec);
};

struct Candidate {
  const DeviceInfo* device = nullptr;
  std::uint64_t queue_wait_ns = 0;  // of all queues that compete with this device
  bool cold = false;                // the program must be built or loaded first
};

// Properties of the job that affect the choice.
struct JobTerms {
  std::uint32_t repeat = 1;      // number of runs on the chosen device
  bool has_deadline = false;     // no exploration runs for this job
  bool can_build_ahead = false;  // Choice::build_ahead is used
};

struct Choice {
  std::size_t candidate = 0;
  std::string because;  // reason with figures
  // Candidate to build the program for while the chosen candidate runs.
  std::optional<std::size_t> build_ahead = std::nullopt;
};

// Cost of one candidate. Infinite values: unknown.
struct CandidateCost {
  std::string device;
  std::string evidence;  // "12 runs", "regression on 9 shapes", "its roof", …
  std::uint64_t runs = 0;
  std::uint32_t looks = 0;
  bool cold = false;
  double queue_ns = 0;
  double transfer_ns = 0;
  // Build time plus the extra time of a first run; 0 if the program is warm, or unknown.
  double build_ns = 0;
  double run_ns = 0;
  double cost_ns = 0;    // total to compare; the build is divided by the expected number of runs
  double deviation = 0;  // standard deviation of the natural logarithm of transfer plus run
};

struct Explanation {
  std::string bucket;  // class of specs and devices that share measurements
  Choice choice;
  std::vector<CandidateCost> candidates;  // as offered
  std::vector<std::string> words;         // one statement per line
};

// Conditions of a run.
struct RunConditions {
  Status status;               // not ok: the run failed or timed out; its times are not learned
  bool contended = false;      // another user of a shared resource was active during the run
  std::uint64_t build_ns = 0;  // time to get the programs if this is their first run; not part of the wall time
};

class DeviceSelector {
 public:
  DeviceSelector() = default;
  DeviceSelector(const DeviceSelector&) = delete;
  DeviceSelector& operator=(const DeviceSelector&) = delete;
  virtual ~DeviceSelector();

  // unavailable: no candidates.
  virtual Result<Choice> select(const ShapeBucket& work, std::span<const Candidate> candidates,
                                const JobTerms& terms) noexcept = 0;
  // Returns what select() would choose now and why. Changes no state.
  virtual Result<Explanation> explain(const ShapeBucket& work, std::span<const Candidate> candidates,
                                      const JobTerms& terms) noexcept = 0;
  virtual void record(const ShapeBucket& work, const DeviceInfo& device, const Measurement& measurement,
                      const RunConditions& conditions) noexcept = 0;
  // Stores now what was learned, where the selector stores anything. The default does nothing.
  virtual void save() noexcept {}
};

struct SelectorContext {
  Log log;
  SelectorConfig config;
  DeviceConfig device;                    // the user's preference
  std::filesystem::path cache_directory;  // folder for the stored model
  bool read_only = false;                 // the model is read but not written
  TraceSink* trace = nullptr;             // outlives the selector; null: no trace
};

}  // namespace kiln
