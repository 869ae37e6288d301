// RunRequest and RunReport: what Runtime::run() is given and what it answers; likewise for warming and replay.
//
// Thread-safety: values. Ownership: tensors are shared with the caller; `stop` is borrowed.
//
//   RunRequest request;
//   request.name = "layer";
//   request.spec = conv;                       // a Conv2dSpec
//   request.tensors = {input, weights, output};
//   request.verify = true;
//   const RunReport report = runtime.run(request);
//   if (!report.status.ok()) std::cerr << report.status.message << '\n';
#pragma once

#include <kiln/device.hpp>
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

namespace kiln {

struct KeptReference;

// What one result of a user's kernel must be.
struct ExpectedOutput {
  std::shared_ptr<const HostTensor> tensor;  // null: this result is not compared
  std::optional<Tolerance> tolerance;        // absent: that of the request
  std::string name{};                        // for messages: the file that the result goes to
};

// The element of an output that is furthest past what it is allowed, or nearest to it.
struct WorstElement {
  std::string output;  // ExpectedOutput::name, or the tensor's name
  Shape index;         // one number a dimension
  double found = 0, expected = 0;
  double allowed = 0;  // absolute error
};

struct RunRequest {
  std::string name;  // a label
  KernelSpec spec;
  std::vector<TensorArgument> tensors;  // in the order of tensors_of(spec)
  std::string device;                   // an id; empty: [device] prefer, then the selector
  std::string variant;                  // of the generator; empty: the one that it prefers
  std::uint32_t repeat = 1;             // runs; the device is selected once for all of them
  bool verify = false;                  // compare with the reference, outside the clock
  // Outputs begin as NaN in every run, on the device too, so that elements that the kernel does not write are seen. For
  // a caller that compares the outputs itself; `verify` implies it.
  bool poison = false;
  // User kernels: one for each output and inout, in order; empty: nothing is compared.
  std::vector<ExpectedOutput> expected;
  std::optional<Tolerance> tolerance;  // of what has none of its own; absent: the default of the operation and type
  std::optional<std::chrono::nanoseconds> timeout;  // a run; absent: [executor] timeout
  const std::atomic<bool>* stop = nullptr;          // true: end between waits, with status cancelled
  // Of its runs among those of other threads on the same device: unordered does not wait for longer results before it.
  Completion completion = Completion::ordered;
  // conv2d and gemm: what `verify` compares with, of whoever keeps it where the inputs stay. null: computed anew.
  std::shared_ptr<const KeptReference> reference;
};

struct RunReport {
  std::string name;
  std::string op;
  Status status;
  DeviceInfo device;  // id empty where none was reached
  std::string variant;
  std::string selected_because;
  std::vector<std::string> keys;  // hexadecimal digests, one per pass
  Tier tier = Tier::invalid;      // of the first acquisition, the slowest among the passes
  std::uint64_t build_ns = 0;
  std::uint32_t runs = 0;  // finished
  Measurement median;      // field by field over the runs
  std::uint64_t wall_min_ns = 0;
  std::uint64_t wall_max_ns = 0;
  std::uint64_t first_output_ns = 0;  // now_ns() when the first output lay in host memory, verification not counted
  double flops = 0;                   // direct; 0 where unknown
  double bytes = 0;                   // of inputs, constants and outputs, each moved once; 0 where unknown
  std::optional<bool> verified;       // nullopt: not compared
  double max_rel_error = 0;           // max |out − ref| ÷ Σ|w·x|
  double error_bound = 0;
  std::uint64_t compared_elements = 0;  // of all outputs that were compared
  std::uint64_t wrong_elements = 0;
  std::optional<WorstElement> worst;  // absent: not compared
  std::vector<std::string> notes;     // devices set aside, fallbacks: nothing happens in silence
};

struct ReplayTerms {
  std::optional<std::chrono::nanoseconds> timeout;  // absent: [executor] timeout
  const std::atomic<bool>* stop = nullptr;          // as RunRequest::stop
};

struct WarmJob {
  std::string name;  // a label
  KernelSpec spec;
};

struct WarmRequest {
  std::vector<WarmJob> jobs;    // their programs, which are built where they are missing; none: what lies on disk
  std::string device;           // an id
  std::size_t most = SIZE_MAX;  // programs; those first that are expected to spare most
  std::function<void(std::size_t done, std::size_t of)> progress;
  const std::atomic<bool>* stop = nullptr;  // true: end between two programs
};

struct WarmReport {
  std::size_t found = 0;   // on disk or named by jobs, at most as many as were asked for
  std::size_t linked = 0;  // programs that can be dispatched
  std::size_t ready = 0;   // programs that have been: nothing is left to generate
  std::size_t built = 0;   // of the linked: there was no entry, or it was refused
  std::size_t failed = 0;
  Status first_failure;
  std::uint64_t link_ns = 0;   // reading, authenticating, loading, building: of the call's time what is not ready_ns
  std::uint64_t ready_ns = 0;  // first dispatches
};

struct WarmingState {    // of the warming that [cache] warm asks for
  bool running = false;  // false: nothing was asked for, or it is done
  std::size_t done = 0;  // programs
  std::size_t of = 0;    // on the devices met so far
  // Of those done, as in WarmReport.
  std::size_t linked = 0, ready = 0, built = 0, failed = 0;
};

struct BackgroundTuningState {  // of the tuning that [generator] background asks for
  bool asked = false;           // false: it was not, or it cannot be done, and the log says why
  std::size_t waiting = 0;      // shapes that ran, and were not looked at since
  std::size_t tuned = 0;        // by this runtime
  std::size_t failed = 0;       // nothing of them could be measured
  std::uint64_t spent_ns = 0;   // measuring and building
};

}  // namespace kiln
