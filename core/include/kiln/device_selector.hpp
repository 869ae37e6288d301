// DeviceSelector: which of the devices that can serve a spec shall serve it, and what was learned from the answer.
//
// Thread-safety: every method from any thread. Ownership: candidates are borrowed for the call.
// Nothing is decided by a device's name or kind: only by cost = queue wait + transfer + build if cold + run.
#pragma once

#include <kiln/config.hpp>
#include <kiln/device.hpp>
#include <kiln/kernel.hpp>
#include <kiln/log.hpp>
#include <kiln/measurement.hpp>
#include <kiln/trace.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kiln {

struct Candidate {
  const DeviceInfo* device = nullptr;
  std::uint64_t queue_wait_ns = 0;  // of every queue that competes for what the device needs
  bool cold = false;                // its program must be built or loaded first
};

// What bears on the choice beside the spec.
struct JobTerms {
  std::uint32_t repeat = 1;      // runs that the chosen device will serve
  bool has_deadline = false;     // nothing is explored at such a job's cost
  bool can_build_ahead = false;  // a program may be built beside the job: Choice::build_ahead is heeded
};

struct Choice {
  std::size_t candidate = 0;
  std::string because;  // the reason with its numbers, in words
  // A candidate whose program is worth building while the chosen one serves.
  std::optional<std::size_t> build_ahead = std::nullopt;
};

// One candidate's cost as the selector sees it. Infinite figures: nothing is known.
struct CandidateCost {
  std::string device;
  std::string evidence;  // "12 runs", "regression on 9 shapes", "its roof", …
  std::uint64_t runs = 0;
  std::uint32_t looks = 0;
  bool cold = false;
  double queue_ns = 0;
  double transfer_ns = 0;
  double build_ns =
      0;  // with what a first run takes beyond a later one; 0 where the program is warm or nothing is known
  double run_ns = 0;
  double cost_ns = 0;    // what is compared: the build counts by the runs that it is expected to serve
  double deviation = 0;  // of the natural logarithm of transfer and run
};

struct Explanation {
  std::string bucket;  // what is expected to run alike
  Choice choice;
  std::vector<CandidateCost> candidates;  // as offered
  std::vector<std::string> words;         // one line a statement, for a person
};

// How a run went beside its times.
struct RunConditions {
  Status status;               // not ok: it timed out or failed, and the measurement says nothing of the device's speed
  bool contended = false;      // something else used what the device shares while it ran
  std::uint64_t build_ns = 0;  // getting its programs, where this run was the first to have them; not part of its wall
};

class DeviceSelector {
 public:
  DeviceSelector() = default;
  DeviceSelector(const DeviceSelector&) = delete;
  DeviceSelector& operator=(const DeviceSelector&) = delete;
  virtual ~DeviceSelector();

  // unavailable where there is no candidate.
  virtual Result<Choice> select(const KernelSpec& spec, std::span<const Candidate> candidates,
                                const JobTerms& terms) noexcept = 0;
  // What select() would answer now, and why; counts nothing and draws nothing.
  virtual Result<Explanation> explain(const KernelSpec& spec, std::span<const Candidate> candidates,
                                      const JobTerms& terms) noexcept = 0;
  virtual void record(const KernelSpec& spec, const DeviceInfo& device, const Measurement& measurement,
                      const RunConditions& conditions) noexcept = 0;
};

struct SelectorContext {
  Log log;
  SelectorConfig config;
  DeviceConfig device;                    // the user's preference
  std::filesystem::path cache_directory;  // where a model may persist
  bool read_only = false;                 // what is there is read, and nothing is written
  TraceSink* trace = nullptr;             // outlives the selector; null: nothing is told
};

}  // namespace kiln
