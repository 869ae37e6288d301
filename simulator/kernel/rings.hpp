// Rings: accepted jobs, the threads that run them, and the files that record their command buffers.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "simulator/kernel/buffer_table.hpp"
#include "simulator/kernel/context.hpp"
#include "simulator/kernel/device.hpp"
#include "simulator/kernel/engine.hpp"
#include "simulator/kernel/settings.hpp"

namespace kiln::simulator::kernel {

// PendingJob: a submission that was accepted and waits for its turn on a ring.
//
// Thread-safety: REQUIRES the device's mutex, except what a ring reads of the job it runs, which nobody else changes.
// Ownership: keeps what the job uses alive until it has ended.

struct PendingJob {
  RingName ring;
  ContextPtr context;
  std::uint32_t context_id = 0;
  std::uint64_t number = 0;      // in its context and ring: what the program knows it by
  std::uint64_t submission = 0;  // on the device
  Fences dependencies;
  JobFences fences;

  std::vector<IndirectBuffer> buffers;
  std::shared_ptr<const AddressSpace> space;
  BufferList list;
  std::vector<std::uint64_t> listed;  // their ids
  bool invalidate_first = false;
  BufferPtr user_fence;  // null: none; else `number` is written there at the end
  std::uint64_t user_fence_offset = 0;

  std::uint32_t vram_losses = 0;  // of the device at submission: another loss cancels the job
  PlannedFault fault = PlannedFault::invalid;
};

// Capture: the command buffers of every submission, each written to a file before it runs, for `kiln pm4 dump`.
//
// Thread-safety: REQUIRES one caller at a time, as the engine has. Ownership: borrows the journal. A file that cannot
// be written is told of there, and the job runs all the same.

class Capture {
 public:
  // Files go to the folder, which exists; none are written where it is empty.
  Capture(std::string folder, Journal& journal) : folder_(std::move(folder)), journal_(journal) {}

  // SUBMISSION-RING-N.pm4: dwords as they lie in memory. What a command buffer chains to is not followed.
  void write(const PendingJob& job);

 private:
  const std::string folder_;
  Journal& journal_;
};

// Rings: the queues of the device. Each ring has a thread that takes jobs whose dependencies are reached, those of one
// context in order, hands them to the engine, and ends them; a job that faults or hangs makes a reset. The engine runs
// one job at a time; a hang holds its ring alone.
//
// Thread-safety: the public methods REQUIRE the device's mutex. Ownership: owns engine and threads; the destructor, for
// which the mutex must be free, abandons what has not ended.

class Device;

class Rings {
 public:
  Rings(Device& device, std::unique_ptr<Engine> engine);
  Rings(const Rings&) = delete;
  Rings& operator=(const Rings&) = delete;
  ~Rings();

  // The ring takes jobs from now on; false: the system gives no thread for it.
  bool start(const RingName& ring);
  void push(PendingJob job);  // REQUIRES: start(job.ring)
  // As if a reset that others caused had taken the context with it.
  void lose_context(Context& context);
  // The device is gone: every job ends with ENODEV.
  void unplug();

 private:
  struct Lane {  // a ring
    RingName name;
    std::list<PendingJob> waiting;  // in order of submission
    bool busy = false;              // with a job that the engine runs, or that hangs
    bool interrupted = false;       // the job ends cancelled, by the reset that another ring makes
    std::thread thread;
  };

  using Lock = std::unique_lock<std::mutex>;

  void serve(Lane& lane);
  std::list<PendingJob>::iterator next_of(Lane& lane);
  int run(Lane& lane, const PendingJob& job, Lock& lock);  // the errno that its fence ends with
  std::optional<Fault> execute(Lane& lane, const PendingJob& job, Lock& lock);
  void finish(const PendingJob& job, int error);
  void reset(Lane& by, const PendingJob& job, const Fault& fault, Lock& lock);
  void interrupt_others(const Lane* by, const char* reason);
  bool others_are_busy(const Lane& by) const;

  Device& device_;
  std::unique_ptr<Engine> engine_;
  Capture capture_;
  std::map<RingName, Lane> lanes_;
  bool executing_ = false;
  bool stopping_ = false;
};

}  // namespace kiln::simulator::kernel
