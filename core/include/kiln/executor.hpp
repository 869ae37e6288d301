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

#include <cstdint>
#include <memory>
#include <vector>

namespace kiln {

// One tensor of a request: exactly one of the two is set, as the tensor's role asks.
struct TensorArgument {
  std::shared_ptr<HostTensor> host;          // input, output, inout
  std::shared_ptr<const Constant> constant;  // constant
};

struct Submission {
  std::shared_ptr<Device> device;
  std::shared_ptr<const KernelPlan> plan;
  std::vector<ProgramHandle> programs;          // one per pass
  std::vector<ProgramHandle> prepare_programs;  // one per prepare pass
  std::vector<TensorArgument> tensors;          // one per tensor of the plan
  Deadline deadline;                            // of the whole job; passing it makes wait() answer timeout
  // What lies in the outputs goes to the device first: how a poison reaches device memory. Its time is in no figure.
  bool upload_outputs = false;
};

// A value on the timeline of one device's queue in this executor. Value 0 is never submitted.
struct Fence {
  std::uint32_t queue = 0;
  std::uint64_t value = 0;
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
};

struct ExecutorContext {
  Log log;
  ExecutorConfig config;
  WorkCounters* counters = nullptr;  // outlives the executor
};

}  // namespace kiln
