// Executor: runs plans on devices asynchronously, with a limited number of jobs in flight and one submit thread per
// device.
//
// Thread-safety: every method from any thread. Ownership: a submission holds its programs and tensors until its fence
// completes, whether or not anyone calls wait(). Destroy the executor before its devices.
// Errors: every method returns a Status or Result. Times are in nanoseconds.
//
//   auto fence = executor.submit(std::move(submission));
//   if (!fence) return fence.error();
//   auto measurement = executor.wait(*fence, kiln::Deadline::after(std::chrono::seconds(10)));
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

namespace [[gnu::visibility("default")]] kiln {

// A tensor of a recording in device memory. Tensors that are never needed at the same time share memory. Its contents
// are undefined until a submission writes them, and after the replay.
struct DeviceTensor {
  std::uint64_t bytes = 0;
  std::shared_ptr<const HostTensor> before;  // copied to the device before each replay; null: nothing
  std::shared_ptr<HostTensor> after;         // gets the contents at the end of each replay; null: nobody does
};

// One tensor of a request. Exactly one member is set, depending on the tensor's role.
struct TensorArgument {
  std::shared_ptr<HostTensor> host;              // input, output, inout
  std::shared_ptr<const Constant> constant;      // constant
  std::shared_ptr<const DeviceTensor> device{};  // input, output, inout of a recorded submission
};

// ordered: the job finishes after all earlier jobs of its queue. unordered: it finishes when its own outputs are in
// host memory, even if outputs of earlier jobs are still being read back, or at once if it fails before submission. In
// both cases the device works in the order of the fences (Device::submit).
enum class Completion : std::uint8_t { invalid = 0, ordered, unordered };

struct Submission {
  std::shared_ptr<Device> device;
  std::shared_ptr<const KernelPlan> plan;
  std::vector<ProgramHandle> programs;          // one per pass
  std::vector<ProgramHandle> prepare_programs;  // one per prepare pass
  std::vector<TensorArgument> tensors;          // one per tensor of the plan
  Deadline deadline;                            // of the whole job; after it, wait() returns timeout
  // Uploads the outputs first, so that poisoned values reach device memory. No figure includes the time.
  bool upload_outputs = false;
  Completion completion = Completion::ordered;
  std::vector<std::vector<ResourceSource>> sources{};  // PassLaunch::sources per pass; empty: none
  // The submitting thread calls wait() for this job next. Where nothing else is in flight, the executor serves a job
  // that has been short before on that thread, which saves waking one of its own.
  bool waits_next = false;
};

// A value on the timeline of one device queue. Submitted values start at 1.
struct Fence {
  std::uint32_t queue = 0;
  std::uint64_t value = 0;
};

// A sequence of submissions that is checked and bound to device memory once and can run many times as one job. It
// uploads tensors that are read before they are written, runs all passes in order, and reads back all written tensors.
// Tensors passed from one submission to a later one remain on the device.
// Ownership: holds everything that its submissions hold, and their device.
class Recording {
 public:
  Recording() = default;
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  virtual ~Recording();
  virtual std::size_t jobs() const noexcept = 0;
  // false also where the executor does not know.
  virtual bool in_flight() const noexcept { return false; }

  // Bytes of device memory of all DeviceTensors, and the most that are needed at the same time.
  std::uint64_t device_bytes = 0, live_bytes = 0;
  // true: the next replay submits one submission after another and stores in `measured` what each took, by the host's
  // clock if the device has no time stamps. An executor that does not support this leaves it empty. Not while a replay
  // is in flight.
  bool measures_each = false;
  std::vector<FenceResult> measured;
};

class Executor {
 public:
  Executor() = default;
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  virtual ~Executor();  // waits for jobs in flight, up to the configured timeout

  // Blocks while all slots of the device are in use. timeout: no slot became free before the deadline. cancelled:
  // none did before the thread's current_stop() was set.
  virtual Result<Fence> submit(Submission submission) noexcept = 0;
  // Waits until the outputs are in host memory. timeout: the job continues, and the caller may wait again. Each result
  // can be taken once; a second call returns not_found.
  virtual Result<Measurement> wait(Fence fence, Deadline deadline) noexcept = 0;
  // Expected wait of a new job for the device, in nanoseconds, estimated from recent jobs.
  virtual std::uint64_t backlog_ns(const Device& device) const noexcept = 0;

  // ok: the job was not submitted, and wait() returns cancelled. unavailable: it was already submitted and will
  // complete. not_found: finished or unknown. unsupported: the executor cannot cancel.
  virtual Status cancel(Fence fence) noexcept;
  // Returns the index of a fence with a finished result that was not taken. not_found: no fence can finish any more.
  // unsupported: this executor has no wait for several fences.
  virtual Result<std::size_t> wait_any(std::span<const Fence> fences, Deadline deadline) noexcept;

  // Creates a Recording for replay() on this executor. invalid_argument: no submissions, or different devices. Ignores
  // the deadlines and completion orders of the submissions.
  virtual Result<std::shared_ptr<Recording>> record(std::vector<Submission> submissions) noexcept;
  // Submits the recording as one job with one fence. invalid_argument: it is still in flight or belongs to another
  // executor.
  virtual Result<Fence> replay(const std::shared_ptr<Recording>& recording, Deadline deadline) noexcept;
};

struct ExecutorContext {
  Log log;
  ExecutorConfig config;
  WorkCounters* counters = nullptr;  // outlives the executor
  TraceSink* trace = nullptr;        // outlives the executor; null: no trace
};

}  // namespace kiln
