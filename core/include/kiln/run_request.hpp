// RunRequest and RunReport: argument and result of Runtime::run(), and the types for warming and replay.
//
// Thread-safety: values. Ownership: a request shares its tensors with the caller and borrows `stop`. Times are in
// nanoseconds.
//
//   kiln::RunRequest request;
//   request.name = "layer";
//   request.spec = conv;                       // a Conv2dSpec
//   request.tensors = {{input, nullptr}, {nullptr, weights}, {output, nullptr}};
//   request.verify = true;
//   const kiln::RunReport report = runtime.run(request);
//   if (!report.status.ok()) std::cerr << report.status.message << '\n';
#pragma once

#include <kiln/device.hpp>
#include <kiln/digest.hpp>
#include <kiln/executor.hpp>
#include <kiln/kernel.hpp>
#include <kiln/measurement.hpp>
#include <kiln/status.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace [[gnu::visibility("default")]] kiln {

struct KeptReference;

// Expected value of one output of a user kernel.
struct ExpectedOutput {
  std::shared_ptr<const HostTensor> tensor;  // null: not compared
  std::optional<Tolerance> tolerance;        // nullopt: the tolerance of the request
  std::string name{};                        // for messages: the output file
};

// The element with the largest ratio of error to allowed error.
struct WorstElement {
  std::string output;  // ExpectedOutput::name, or the tensor's name
  Shape index;         // one number per dimension
  double found = 0, expected = 0;
  double allowed = 0;  // absolute error
};

struct RunRequest {
  std::string name;
  KernelSpec spec;
  std::vector<TensorArgument> tensors;  // in the order of tensors_of(spec)
  std::string device;                   // an id; empty: [device] prefer, or the selector's choice
  std::string variant;                  // of the generator; empty: the preferred one
  std::uint32_t repeat = 1;             // number of runs; one device runs all of them
  bool verify = false;                  // compare with the reference, outside the measured time
  // Fills outputs with NaN before every run, also on the device, to detect elements that are not written. Set it if you
  // compare the outputs yourself. `verify` implies it.
  bool poison = false;
  // User kernels: one per output and inout tensor, in order; empty: nothing is compared.
  std::vector<ExpectedOutput> expected;
  std::optional<Tolerance> tolerance;  // for outputs without their own; nullopt: default of operation and type
  std::optional<std::chrono::nanoseconds> timeout;  // per run; nullopt: [executor] timeout
  const std::atomic<bool>* stop = nullptr;          // true: stop waiting, with status cancelled
  // Called on the thread of run() after each of the `repeat` runs, with the number of finished runs. Return false to start no
  // further run; the status is then cancelled, unless this was the last run. Empty: not called.
  std::function<bool(std::uint32_t finished)> progress;
  // Order relative to jobs of other threads on the device. unordered: the job does not wait for outputs of earlier jobs.
  Completion completion = Completion::ordered;
  // Called once, on the thread of run(), when the programs are ready and before the first run. It may block until other
  // jobs have run. Return false to end the job with status cancelled. Empty: the job runs at once.
  std::function<bool()> may_run;
  // Layers: a stored reference for `verify`, valid while the inputs do not change. null: each call computes the reference.
  std::shared_ptr<const KeptReference> reference;
};

// One step of a pipeline, summed over its rounds.
struct StepReport {
  std::string name;
  std::string op;
  std::string variant;
  Tier tier = Tier::invalid;
  std::uint64_t build_ns = 0;
  std::uint64_t rounds = 0;      // runs of the step in one run of the pipeline
  std::uint64_t device_ns = 0;   // of all rounds; 0: not measured
  double flops = 0;              // of one round; 0: unknown
  std::optional<bool> verified;  // nullopt: not compared
  double max_rel_error = 0;
  double error_bound = 0;
};

struct RunReport {
  std::string name;
  std::string op;
  Status status;
  DeviceInfo device;  // the id is empty if no device was reached
  std::string variant;
  std::string selected_because;
  std::vector<std::string> keys;  // hexadecimal digests, one per pass
  Tier tier = Tier::invalid;      // of the first acquisition; the slowest of all passes
  std::uint64_t build_ns = 0;
  std::uint32_t runs = 0;  // finished runs
  Measurement median;      // field by field
  std::uint64_t wall_min_ns = 0;
  std::uint64_t wall_max_ns = 0;
  std::uint64_t first_output_ns = 0;  // now_ns() when the first output was in host memory
  double flops = 0;                   // without Winograd savings; 0: unknown
  double bytes = 0;                   // inputs, constants and outputs, each counted once; 0: unknown
  std::optional<bool> verified;       // nullopt: not compared
  double max_rel_error = 0;           // max |out − ref| ÷ Σ|w·x|
  double error_bound = 0;
  std::uint64_t compared_elements = 0;  // of all compared outputs
  std::uint64_t wrong_elements = 0;
  std::optional<WorstElement> worst;  // nullopt: not compared
  std::vector<std::string> notes;     // rejected devices, fallbacks and similar events
  // Of a pipeline: its steps, the bytes of its intermediate tensors, and the largest number of bytes needed at one time.
  std::vector<StepReport> steps{};
  std::uint64_t intermediate_bytes = 0, live_bytes = 0;
  std::vector<std::string> prepare_keys{};  // as `keys`, of the passes that prepare constants
};

// Returns the digest of the programs that ran, for VariantSamples::source_digest.
inline std::string source_digest_of(const RunReport& report) {
  std::string digest;
  for (const std::string& key : report.prepare_keys) digest += key.substr(0, 16);
  for (const std::string& key : report.keys) digest += key.substr(0, 16);
  return digest;
}

struct ReplayTerms {
  std::optional<std::chrono::nanoseconds> timeout;  // nullopt: [executor] timeout
  const std::atomic<bool>* stop = nullptr;          // as RunRequest::stop
};

struct WarmJob {
  std::string name;
  KernelSpec spec;
};

struct WarmRequest {
  std::vector<WarmJob> jobs;    // builds or loads the programs of these jobs; empty: loads stored programs
  std::string device;           // an id
  std::size_t most = SIZE_MAX;  // number of programs, largest expected time savings first
  std::function<void(std::size_t done, std::size_t of)> progress;
  const std::atomic<bool>* stop = nullptr;  // true: stop before the next program
};

struct WarmReport {
  std::size_t found = 0;   // on disk or named by jobs, at most `most`
  std::size_t linked = 0;  // programs that can be dispatched
  std::size_t ready = 0;   // programs dispatched once
  std::size_t built = 0;   // linked programs that had to be built
  std::size_t failed = 0;
  Status first_failure;
  std::vector<Digest> keys;           // of the linked programs
  std::vector<std::string> unfitted;  // names of jobs that this kind of device cannot run
  std::uint64_t link_ns = 0;   // reading, authenticating, loading and building: total time minus ready_ns
  std::uint64_t ready_ns = 0;  // first dispatches
};

struct WarmingState {    // state of the warming by [cache] warm
  bool running = false;  // false: not configured or finished
  std::size_t done = 0;  // programs
  std::size_t of = 0;    // on the devices opened so far
  // Counts of `done`, as in WarmReport.
  std::size_t linked = 0, ready = 0, built = 0, failed = 0;
};

struct BackgroundTuningState {  // state of the tuning by [generator] background
  bool asked = false;           // false: not configured, or not possible (see the log)
  std::size_t waiting = 0;      // shapes to be tuned
  std::size_t tuned = 0;        // by this runtime
  std::size_t failed = 0;       // shapes that could not be measured
  std::uint64_t spent_ns = 0;   // time of measuring and building
};

// Returns the report as one line of JSON: an element of `jobs` of `kiln run --json` (docs/json.md). first_result_ms: time
// since the start of the command; 0: unknown. output: the file of the result; empty: none.
std::string report_json(const RunReport& report, double first_result_ms = 0, const std::string& output = {});

// Returns direct FLOPs divided by time, in GFLOP/s; 0: either is unknown.
double gflops(double flops, std::uint64_t ns);

}  // namespace kiln
