// Rings: the queues of the device. Each ring has a thread that takes jobs whose dependencies are reached, those of one
// context in order, hands them to the engine, and ends them; a job that faults or hangs makes a reset. The engine runs
// one job at a time; a hang holds its ring alone.
//
// Thread-safety: the public methods REQUIRE the device's mutex. Ownership: owns engine and threads; the destructor, for
// which the mutex must be free, abandons what has not ended.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "simulator/kernel/submit/capture.hpp"
#include "simulator/kernel/submit/engine.hpp"
#include "simulator/kernel/submit/job.hpp"

namespace kiln::simulator::kernel {

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
