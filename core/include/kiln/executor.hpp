// Executor: runs plans on devices asynchronously: bounded slots in flight, one submit thread a device, results that
// cannot be lost.
//
// Thread-safety: every method from any thread. Ownership: a submission keeps its programs pinned and its tensors alive
// until its fence, also when nobody waits or a wait timed out. The executor dies before the devices it submits to.
#pragma once

#include <kiln/clock.hpp>
#include <kiln/device.hpp>
#include <kiln/measurement.hpp>
#include <kiln/program.hpp>
#include <kiln/tensor.hpp>
#include <kiln/trace.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace kiln {

// One tensor of a request: exactly one of the two is set, as the tensor's role asks.
struct TensorArgument {
  std::shared_ptr<HostTensor> host;          // input, output, inout
  std::shared_ptr<const Constant> constant;  // constant
};

// ordered: the job finishes after all that were submitted to its queue before it. unordered: it finishes as soon as its
// own outputs lie in host memory, also where longer ones of jobs before it are still coming back; and at once where it
// fails on its way to the device. The order in which jobs reach a device, and in which it works on them, is that of
// their fences either way: a device completes in order (Device::submit).
enum class Completion : std::uint8_t { invalid = 0, ordered, unordered };

struct Submission {
  std::shared_ptr<Device> device;
  std::shared_ptr<const KernelPlan> plan;
  std::vector<ProgramHandle> programs;          // one per pass
  std::vector<ProgramHandle> prepare_programs;  // one per prepare pass
  std::vector<TensorArgument> tensors;          // one per tensor of the plan
  Deadline deadline;                            // of the whole job; passing it makes wait() answer timeout
  // What lies in the outputs goes to the device first: how a poison reaches device memory. Its time is in no figure.
  bool upload_outputs = false;
  Completion completion = Completion::ordered;
  std::vector<std::vector<ResourceSource>> sources{};  // PassLaunch::sources of each pass; empty: of none
};

// A value on the timeline of one device's queue in this executor. Value 0 is never submitted.
struct Fence {
  std::uint32_t queue = 0;
  std::uint64_t value = 0;
};

// A sequence of submissions that was checked and bound to device memory of its own once, to be run again and again as
// one job: every tensor that is read before it is written goes to the device, all passes run in order, and every tensor
// that was written comes back. A tensor that one submission writes and a later one reads stays on the device between
// them. Ownership: it keeps everything that its submissions hold, and their device.
class Recording {
 public:
  Recording() = default;
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  virtual ~Recording();
  virtual std::size_t jobs() const noexcept = 0;
};

class Executor {
 public:
  Executor() = default;
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  virtual ~Executor();  // waits for what is in flight, within the configured timeout

  // Blocks while all slots of the device are taken; timeout where none came free before the deadline.
  virtual Result<Fence> submit(Submission submission) noexcept = 0;
  // Outputs are in host memory when this answers a Measurement. timeout: the job goes on, its slot stays busy, and it
  // may be waited for again. A finished result stays until it is taken here, once; a second taking is not_found.
  virtual Result<Measurement> wait(Fence fence, Deadline deadline) noexcept = 0;
  // Nanoseconds of work queued for the device, by recent jobs: what a new one would wait.
  virtual std::uint64_t backlog_ns(const Device& device) const noexcept = 0;

  // ok: the job does not reach the device, and wait() answers cancelled. unavailable: it did already, and runs to its
  // end. not_found: it is finished, or never was. An executor without cancellation answers unsupported.
  virtual Status cancel(Fence fence) noexcept;
  // The index of a fence whose job is finished and whose result is still to be taken. not_found: none of them can be
  // any more. unsupported likewise.
  virtual Result<std::size_t> wait_any(std::span<const Fence> fences, Deadline deadline) noexcept;

  // Makes a Recording for replay() on this executor. invalid_argument: there are none, or they are for different
  // devices. Deadlines and the order of completion are those of replay().
  virtual Result<std::shared_ptr<Recording>> record(std::vector<Submission> submissions) noexcept;
  // Submits all of it as one job with one fence. invalid_argument: it is in flight still, or is another executor's.
  virtual Result<Fence> replay(const std::shared_ptr<Recording>& recording, Deadline deadline) noexcept;
};

struct ExecutorContext {
  Log log;
  ExecutorConfig config;
  WorkCounters* counters = nullptr;  // outlives the executor
  TraceSink* trace = nullptr;        // outlives the executor; null: nothing is told
};

}  // namespace kiln
