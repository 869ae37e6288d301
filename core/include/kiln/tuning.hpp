// What a generator and whoever tunes it say to each other: a bench that runs one variant, what was asked, what came
// out; and what is asked of the measurements that a generator keeps.
//
// Thread-safety: values; a VariantBench is used by one thread at a time. Ownership: the caller's.
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

namespace kiln {

// Of some runs of one variant. wall: from the request to the output in host memory; device: by the device's clock, 0
// where it has none. The first run, which may have compiled, is not among them.
struct VariantSamples {
  std::vector<std::uint64_t> wall_ns;
  std::vector<std::uint64_t> device_ns;
  std::string source_digest;  // of the plan's sources
  double max_rel_error = 0;   // of the whole output against the reference
  double error_bound = 0;
  // Without a reference: variants with the same number computed the same output. 0: compared with a reference.
  std::uint32_t agreement = 0;
  // The part of their time, 0 to 1, that the threads of the bench waited for a processor during these runs, each
  // weighted by how long it ran. 0 where the system does not report it.
  double contention = 0;
};

// Of VariantSamples::agreement: the bench holds as many different outputs as it may, and this one is none of them.
inline constexpr std::uint32_t agrees_with_none = UINT32_MAX;

// Runs variants of one spec on one device where they can do no harm: in a process of its own.
class VariantBench {
 public:
  VariantBench() = default;
  VariantBench(const VariantBench&) = delete;
  VariantBench& operator=(const VariantBench&) = delete;
  virtual ~VariantBench();

  // The output of each run is compared with the reference, or grouped by agreement, outside the times. timeout: not
  // done within `limit`; what hangs is ended. device_lost: it ended the process. corrupt: an output is wrong. Others:
  // as build and run answer. After any of them the bench serves the next variant.
  virtual Result<VariantSamples> measure(std::string_view variant, std::uint32_t runs,
                                         std::chrono::nanoseconds limit) noexcept = 0;
  // For how long its measurements stood back for something else so far: that is no part of a budget.
  virtual std::uint64_t waited_ns() const noexcept { return 0; }
};

struct TuneProgress {
  std::size_t measured = 0, planned = 0;  // candidates
  std::string best;
  std::uint64_t best_ns = 0;
  std::uint64_t left_ns = 0;  // expected
};

struct TuneOptions {
  std::chrono::nanoseconds budget = std::chrono::seconds(30);  // of one spec; what the bench waited is not counted
  bool exhaustive = false;                                     // the whole space, whatever it costs
  bool again = false;                                          // measure also what is known
  bool audit = false;  // measure what won before, nothing else, and mark it where it no longer holds
  std::function<void(const TuneProgress&)> progress;
  const std::atomic<bool>* stop = nullptr;  // true: end between two measurements; what was measured is kept
  std::string name;                         // label of the winner's programs
  bool by_agreement = false;  // there is no reference: the largest group of variants that agree is taken as right
  // What verdicts rest on beside the sources: a digest of the expected outputs and tolerances. Records with another one
  // are measured again.
  std::string basis;
  // Told of the winner before generate() answers it, so that its programs are where whoever runs it looks for them;
  // a failure leaves what served before. The runtime sets it.
  std::function<Status(const std::string& variant)> publish;
};

// Why the winner is the winner.
enum class TuneDecision : std::uint8_t {
  invalid = 0,
  faster,  // it beat what served before by more than the noise of both, or nothing else could serve
  kept,    // it served before, and no other variant is faster by more than the noise of both
  busy,    // the machine was too busy to compare: what served before is kept
};

std::string_view to_string(TuneDecision decision) noexcept;

struct TuneOutcome {
  std::string variant;  // the winner
  TuneDecision decision = TuneDecision::invalid;
  std::string note;                     // busy: what was measured and what to do; else empty
  std::string incumbent;                // what served before
  std::uint64_t incumbent_wall_ns = 0;  // its median in the rounds in which the winner's was measured; 0: it failed
  double contention = 0;                // VariantSamples::contention, the median over the rounds
  std::uint64_t wall_ns = 0;            // medians of its samples
  std::uint64_t device_ns = 0;          // 0: the device has no clock
  std::string baseline;                 // the plain variant, measured in the same rounds
  std::uint64_t baseline_wall_ns = 0;
  std::uint64_t baseline_device_ns = 0;
  std::size_t space = 0;              // variants that fit
  std::size_t candidates = 0;         // measured now
  std::size_t known = 0;              // taken from records
  std::vector<std::string> rejected;  // "variant: why", each variant once
  // Of an audit, which fills in the variant and its medians beside these and nothing else.
  std::uint64_t recorded_wall_ns = 0;  // when it won
  std::string stale;                   // why it no longer holds; empty: it does
};

struct DeviceInfo;

struct MergedTuning {  // records
  std::size_t taken = 0;
  std::size_t older = 0;    // passed over: what is here is as new
  std::size_t damaged = 0;  // left out
};

enum class TuningState : std::uint8_t {
  invalid = 0,
  fixed,    // there is nothing to choose from
  untuned,  // there is, and no winner
  tuned,
  stale,  // the winner serves, and is to be measured again: it is slower than it was
};

// The measurements that a generator keeps, over all its devices.
//
// Thread-safety: every method from any thread. Ownership: the generator's.
class TuningStore {
 public:
  TuningStore() = default;
  TuningStore(const TuningStore&) = delete;
  TuningStore& operator=(const TuningStore&) = delete;
  virtual ~TuningStore();

  // The specs that have a winner on the device, in an order that stays.
  virtual std::vector<KernelSpec> tuned(const DeviceInfo& device) = 0;
  // What other processes have kept since counts too.
  virtual TuningState state(const KernelSpec& spec, const DeviceInfo& device) noexcept = 0;
  // All of them, as a text that merge() takes.
  virtual std::string exported() noexcept = 0;
  // Takes in what is newer than what is here. corrupt: the text is none of exported().
  virtual Result<MergedTuning> merge(std::string_view text) noexcept = 0;
};

}  // namespace kiln
