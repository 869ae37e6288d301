// SlotPipeline: one queue without its threads: the ring, the slots with their jobs, and the work of each lane. A caller
// runs a lane by begin(), the lane's function and end(); RingQueue does so from threads.
//
// Thread-safety: every method from any thread; the work of a lane from the holder of its claim. Ownership: holds the
// device until let_go(); owns the timeline with its results.
#pragma once

#include "executor/ring.hpp"
#include "executor/slot.hpp"
#include "executor/timeline.hpp"

#include <kiln/executor.hpp>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <variant>
#include <vector>

namespace kiln::executor {

using Job = std::variant<Submission, std::shared_ptr<RecordedWork>>;

class SlotPipeline {
 public:
  SlotPipeline(std::shared_ptr<Device> device, const ExecutorContext& context);

  // For submitters, under mutex(): call take_free() until it returns a slot or refusal() is set, then enter().
  std::mutex& mutex() const noexcept { return mutex_; }
  Slot* take_free() noexcept { return static_cast<Slot*>(ring_.take_free()); }
  const Status& refusal() const noexcept { return refusal_; }
  std::uint64_t enter(Slot& slot, Job job, Deadline deadline, std::uint64_t entered_ns, Wake& wake);
  std::uint32_t depth() const noexcept { return ring_.depth(); }
  bool idle() const noexcept { return ring_.taken() == 0; }
  bool ready(Lane lane) const noexcept { return ring_.ready(lane); }
  const Seat* next(Lane lane) const noexcept { return ring_.next(lane); }
  // Whether the lane's next job is long enough for a separate thread.
  bool next_is_apart(Lane lane) const noexcept;

  // Returns the lane's next work. `apart`: only if next_is_apart() equals it; nullopt: any.
  Claim begin(Lane lane, std::optional<bool> apart);
  void upload(Claim& claim);
  void dispatch(Claim& claim);
  // For `retire` and `beside`. false: the device did not finish in time, and nothing was done.
  bool retire(Claim& claim, Deadline patience);
  Wake end(Claim& claim);
  // Returns a claim undone. true: the lane's next work is for a separate thread, which must be woken.
  [[nodiscard]] bool put_back(Claim& claim);

  // As Executor::cancel().
  Status cancel(std::uint64_t value, Wake& wake);
  // Refuses all later jobs. The first reason remains.
  void refuse(Status why);
  bool lost() const noexcept { return is_lost_.load(std::memory_order_acquire); }

  Timeline& timeline() noexcept { return timeline_; }
  const std::string& name() const noexcept { return name_; }
  std::uint64_t backlog_ns() const noexcept;
  std::uint32_t in_flight() const noexcept { return in_flight_.load(std::memory_order_relaxed); }
  std::uint64_t usual_run_ns() const noexcept { return run_average_.ns(); }
  // How long Device::submit() usually takes; UINT64_MAX: unknown.
  std::uint64_t usual_submit_ns() const noexcept { return submit_ns_.load(std::memory_order_relaxed); }

  std::shared_ptr<Device> device() const;  // null after let_go()
  bool serves(const std::shared_ptr<Device>& device) const;
  bool serves(const Device& device) const;

  // Removes the buffers of destroyed Constants. Returns whether any Constants remain.
  bool sweep();
  // Releases everything that belongs to the device. REQUIRES: idle().
  void let_go();
  // After this, a thread that returns from the device sleeps for ever: memory that the device may still use is not
  // freed, and counters and trace are no longer used.
  void abandon();
  void park_if_abandoned() const;

 private:
  void finish(Slot& slot);
  Result<Measurement> outcome_of(Slot& slot);
  Status executor_cancelled(std::uint64_t value) const;
  void lose(const Status& cause);
  Status submit_alone(Slot& slot);
  void run_alone(Slot& slot);
  void read_back(Slot& slot, std::uint32_t jobs);
  std::uint64_t finished_at(std::uint64_t now);  // returns when the previous job finished
  Result<FenceResult> run_to_end(const Dispatch& dispatch);
  void fail(Slot& slot, Status why);
  void learn(const Slot& slot);

  const std::string name_;  // "the queue of device cpu"
  const std::string device_id_;
  const bool adaptive_;
  WorkCounters* const counters_;
  TraceSink* const trace_;
  Timeline timeline_;

  mutable std::mutex mutex_;  // guards the members up to the next blank line
  mutable std::condition_variable never_;
  std::shared_ptr<Device> device_;
  const std::weak_ptr<Device> identity_;
  std::vector<std::unique_ptr<Slot>> slots_;
  Ring ring_;
  Status refusal_;
  Status lost_;
  DepthController depth_;
  std::uint64_t last_finished_ns_ = 0;  // of jobs that the device ran

  std::mutex constants_mutex_;
  std::optional<ConstantStore> constants_;

  std::vector<PassLaunch> batch_;  // of the dispatch lane
  RunAverage run_average_;         // changed under the lock
  UsualCopy upload_, readback_;
  std::atomic<std::uint64_t> device_ns_{UINT64_MAX};  // usual device time; UINT64_MAX: unknown
  std::atomic<std::uint64_t> submit_ns_{UINT64_MAX};
  std::atomic<std::uint32_t> in_flight_{0};
  std::atomic<bool> is_lost_{false};
  std::atomic<bool> abandoned_{false};
};

}  // namespace kiln::executor
