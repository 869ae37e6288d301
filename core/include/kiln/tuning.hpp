// Tuning: the interface between a generator and its tuner. It has a bench that measures variants, options, the outcome, and
// the stored measurements.
//
// Thread-safety: values; one thread at a time uses a VariantBench. Ownership: the caller owns all objects. Times are in
// nanoseconds.
//
//   auto outcome = runtime.tune(spec, "opengl:0", bench, {});
//   if (!outcome) return outcome.error();
//   std::cout << outcome->variant << ' ' << outcome->wall_ns << " ns\n";
#pragma once

#include <kiln/kernel.hpp>
#include <kiln/status.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace [[gnu::visibility("default")]] kiln {

// Measurements of one variant, without the first run, because that run may compile. wall_ns: from the request to the output
// in host memory. device_ns: from device timestamps; 0 without timestamps.
struct VariantSamples {
  std::vector<std::uint64_t> wall_ns;
  std::vector<std::uint64_t> device_ns;
  std::string source_digest;  // of the sources of the plan
  double max_rel_error = 0;   // of the complete output
  double error_bound = 0;
  // Without a reference: variants with the same number have equal outputs. 0: compared with a reference.
  std::uint32_t agreement = 0;
  // Share (0 to 1) of the run time in which threads of the bench waited for a processor, weighted by run time. 0 if the
  // system does not report it.
  double contention = 0;
};

// Value of `agreement`: no group matches, and the bench cannot store more groups.
inline constexpr std::uint32_t agrees_with_none = UINT32_MAX;

// Measures variants of one spec on one device in a separate process.
class VariantBench {
 public:
  VariantBench() = default;
  VariantBench(const VariantBench&) = delete;
  VariantBench& operator=(const VariantBench&) = delete;
  virtual ~VariantBench();

  // Runs the variant. Outside the measured time, compares each output with the reference or assigns it to a group. The bench
  // remains usable after an error. timeout: the run exceeded `limit` and was stopped. device_lost: the process crashed.
  // corrupt: wrong output. Other codes: errors of build and run.
  virtual Result<VariantSamples> measure(std::string_view variant, std::uint32_t runs,
                                         std::chrono::nanoseconds limit) noexcept = 0;
  // Returns the total time of pauses in measurements. It does not count against a budget.
  virtual std::uint64_t waited_ns() const noexcept { return 0; }
};

struct TuneProgress {
  std::size_t measured = 0, planned = 0;  // candidates
  std::string best;
  std::uint64_t best_ns = 0;
  std::uint64_t left_ns = 0;  // estimated time left
};

struct TuneOptions {
  std::chrono::nanoseconds budget = std::chrono::seconds(30);  // per spec, without paused time
  bool exhaustive = false;                                     // measure all variants, without limit
  bool again = false;                                          // ignore stored measurements
  bool audit = false;  // measure only the current winner, and mark it as stale if it is no longer valid
  std::function<void(const TuneProgress&)> progress;
  const std::atomic<bool>* stop = nullptr;  // true: stop before the next measurement and store the results
  std::string name;                         // label for the winner's programs
  bool by_agreement = false;                // no reference: the largest group of equal outputs counts as correct
  // Digest of expected outputs and tolerances. Measurements are repeated if the stored ones have another digest.
  std::string basis;
  // Stores the winner's programs. The tuner calls it before generate() returns the winner. On failure the previous winner
  // remains. The runtime sets it.
  std::function<Status(const std::string& variant)> publish;
};

// Reason of the result.
enum class TuneDecision : std::uint8_t {
  invalid = 0,
  faster,  // faster than the incumbent by more than the noise, or the only variant that works
  kept,    // the incumbent remains: no variant is faster by more than the noise
  busy,    // the machine was too busy to compare; the incumbent remains
};

std::string_view to_string(TuneDecision decision) noexcept;

struct TuneOutcome {
  std::string variant;  // the winner
  TuneDecision decision = TuneDecision::invalid;
  std::string note;                     // busy: measurements and advice; otherwise empty
  std::string incumbent;                // the variant used before
  std::uint64_t incumbent_wall_ns = 0;  // median in the same rounds as the winner; 0: it failed
  double contention = 0;                // median of VariantSamples::contention over the rounds
  std::uint64_t wall_ns = 0;            // median
  std::uint64_t device_ns = 0;          // median; 0: the device has no clock
  std::string baseline;                 // the plain variant, measured in the same rounds
  std::uint64_t baseline_wall_ns = 0;
  std::uint64_t baseline_device_ns = 0;
  std::size_t space = 0;              // number of variants that fit
  std::size_t candidates = 0;         // measured in this call
  std::size_t known = 0;              // taken from stored measurements
  std::vector<std::string> rejected;  // "variant: reason", without duplicates
  // For an audit. An audit sets only these members, the variant and its medians.
  std::uint64_t recorded_wall_ns = 0;  // the winner's time when it became the winner
  std::string stale;                   // why the winner is no longer valid; empty: it is valid
};

struct DeviceInfo;

struct MergedTuning {  // numbers of records
  std::size_t taken = 0;
  std::size_t older = 0;    // skipped: not newer than the stored records
  std::size_t damaged = 0;  // skipped: damaged
};

enum class TuningState : std::uint8_t {
  invalid = 0,
  fixed,    // only one variant exists
  untuned,  // several variants, no winner
  tuned,
  stale,  // the winner is in use, but should be measured again because it became slower
};

// The measurements that a generator stores, for all its devices.
//
// Thread-safety: every method from any thread. Ownership: owned by the generator.
class TuningStore {
 public:
  TuningStore() = default;
  TuningStore(const TuningStore&) = delete;
  TuningStore& operator=(const TuningStore&) = delete;
  virtual ~TuningStore();

  // Returns the specs with a winner on the device, in a stable order.
  virtual std::vector<KernelSpec> tuned(const DeviceInfo& device) = 0;
  // Returns the state of a spec. Includes new results of other processes.
  virtual TuningState state(const KernelSpec& spec, const DeviceInfo& device) noexcept = 0;
  // Returns all measurements as text for merge().
  virtual std::string exported() noexcept = 0;
  // Adds measurements that are newer than the stored measurements. corrupt: not a text of exported().
  virtual Result<MergedTuning> merge(std::string_view text) noexcept = 0;
};

}  // namespace kiln
