// Executor: runs plans on devices asynchronously, with a limited number of jobs in flight and one submit thread per
// device.
//
// Thread-safety: every method from any thread. Ownership: a submission owns references to its programs and tensors until
// its fence is reached, also without a call of wait(). Destroy the executor before its devices.
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

// A tensor of a recording in device memory. Tensors that are never needed at the same time share memory. The contents are
// undefined before a submission writes them, and after the replay.
struct DeviceTensor {
  std::uint64_t bytes = 0;
  std::shared_ptr<const HostTensor> before;  // copied to the device before each replay; null: nothing
  std::shared_ptr<HostTensor> after;         // receives the contents at the end of each replay; null: nothing
};

// One tensor of a request. Exactly one member is set, depending on the tensor's role.
struct TensorArgument {
  std::shared_ptr<HostTensor> host;              // input, output, inout
  std::shared_ptr<const Constant> constant;      // constant
  std::shared_ptr<const DeviceTensor> device{};  // input, output, inout of a recorded submission
};

// ordered: the job finishes after all earlier jobs of its queue. unordered: the job finishes when its own outputs are in
// host memory, even if outputs of earlier jobs are still being read back. A job that fails before submission finishes at
// once. In both cases the device works in the order of the fences (Device::submit).
enum class Completion : std::uint8_t { invalid = 0, ordered, unordered };

struct Submission {
  std::shared_ptr<Device> device;
  std::shared_ptr<const KernelPlan> plan;
  std::vector<ProgramHandle> programs;          // one per pass
  std::vector<ProgramHandle> prepare_programs;  // one per prepare pass
  std::vector<TensorArgument> tensors;          // one per tensor of the plan
  Deadline deadline;                            // of the whole job; after it, wait() returns timeout
  // Uploads the outputs first, so that device memory contains the poisoned values. No measurement includes the time.
  bool upload_outputs = false;
  Completion completion = Completion::ordered;
  std::vector<std::vector<ResourceSource>> sources{};  // PassLaunch::sources per pass; empty: none
  // The submitting thread calls wait() for this job next. If nothing else is in flight, the executor runs the job on that
  // thread and need not wake its own threads. It does so if the plan's last job was short, or if the plan never ran, has
  // no packing, and the device's submissions are quick.
  bool waits_next = false;
};

// A value on the timeline of one device queue. Submitted values start at 1.
struct Fence {
  std::uint32_t queue = 0;
  std::uint64_t value = 0;
};

// A sequence of submissions that is checked and bound to device memory once and can run many times as one job. A replay
// uploads tensors that are read before they are written, runs all passes in order, and reads back all written tensors.
// Tensors from one submission to a later one remain on the device.
// Ownership: owns references to the device and to the programs and tensors of its submissions.
class Recording {
 public:
  Recording() = default;
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  virtual ~Recording();
  virtual std::size_t jobs() const noexcept = 0;
  // Returns whether a replay is in flight. Also returns false if the executor cannot determine it.
  virtual bool in_flight() const noexcept { return false; }

  // Bytes of device memory of all DeviceTensors, and the largest number of bytes that are needed at the same time.
  std::uint64_t device_bytes = 0, live_bytes = 0;
  // true: the next replay runs the submissions one after another and stores their times in `measured`. Without device
  // timestamps, the times are by the host's clock. Without support in the executor, `measured` is empty. Do not change this
  // member while a replay is in flight.
  bool measures_each = false;
  std::vector<FenceResult> measured;
};

class Executor {
 public:
  Executor() = default;
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  virtual ~Executor();  // waits for jobs in flight, up to the configured timeout

  // Blocks while all slots of the device are in use. timeout: no slot became free before the deadline. cancelled: the
  // thread's current_stop() was set before a slot became free.
  virtual Result<Fence> submit(Submission submission) noexcept = 0;
  // Waits until the outputs are in host memory. timeout: the job continues, and the caller may wait again. Returns each
  // result once; a second call returns not_found.
  virtual Result<Measurement> wait(Fence fence, Deadline deadline) noexcept = 0;
  // Returns the expected wait of a new job for the device, in nanoseconds, estimated from recent jobs.
  virtual std::uint64_t backlog_ns(const Device& device) const noexcept = 0;

  // ok: the job was not submitted, and wait() returns cancelled. unavailable: the job was already submitted and will
  // complete. not_found: the job is finished or unknown. unsupported: the executor cannot cancel.
  virtual Status cancel(Fence fence) noexcept;
  // Returns the index of a fence with a finished result that wait() has not returned. not_found: no fence has an
  // outstanding result. unsupported: this executor cannot wait for several fences.
  virtual Result<std::size_t> wait_any(std::span<const Fence> fences, Deadline deadline) noexcept;

  // Creates a Recording for replay() on this executor. Ignores the deadlines and completion orders of the submissions.
  // invalid_argument: no submissions, or different devices.
  virtual Result<std::shared_ptr<Recording>> record(std::vector<Submission> submissions) noexcept;
  // Submits the recording as one job with one fence. invalid_argument: the recording is still in flight or belongs to
  // another executor.
  virtual Result<Fence> replay(const std::shared_ptr<Recording>& recording, Deadline deadline) noexcept;
};

struct ExecutorContext {
  Log log;
  ExecutorConfig config;
  WorkCounters* counters = nullptr;  // outlives the executor
  TraceSink* trace = nullptr;        // outlives the executor; null: no trace
};

}  // namespace kiln
