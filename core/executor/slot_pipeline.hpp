// SlotPipeline: one queue without its threads: the ring, the slots with their jobs, and the work of each lane. What
// serves the lanes calls begin(), the lane's work and end(); RingQueue does so from threads.
//
// Thread-safety: every method from any thread, each lane's work by whoever holds its claim. Ownership: keeps the device
// until let_go(); the timeline with its results stays as long as the pipeline.
#pragma once

#include "executor/ring/depth_controller.hpp"
#include "executor/ring/ring.hpp"
#include "executor/ring/run_average.hpp"
#include "executor/ring/timeline.hpp"
#include "executor/ring/usual_copy.hpp"
#include "executor/stages/slot.hpp"

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

  // Where submitters wait. Under mutex(): take_free() until it answers a slot or refusal() is set, then enter().
  std::mutex& mutex() const noexcept { return mutex_; }
  Slot* take_free() noexcept { return static_cast<Slot*>(ring_.take_free()); }
  const Status& refusal() const noexcept { return refusal_; }
  std::uint64_t enter(Slot& slot, Job job, Deadline deadline, std::uint64_t entered_ns, Wake& wake);
  std::uint32_t depth() const noexcept { return ring_.depth(); }
  bool idle() const noexcept { return ring_.taken() == 0; }
  bool ready(Lane lane) const noexcept { return ring_.ready(lane); }
  const Seat* next(Lane lane) const noexcept { return ring_.next(lane); }
  // Whether the lane's next job is long enough there to be worth a thread apart.
  bool next_is_apart(Lane lane) const noexcept;

  // The lane's next work. `apart`: only if next_is_apart() says the same; absent: whatever is next.
  Claim begin(Lane lane, std::optional<bool> apart);
  void upload(Claim& claim);
  void dispatch(Claim& claim);
  // Of `retire` and `beside`. false: the device has not finished by then, and nothing was done.
  bool retire(Claim& claim, Deadline patience);
  Wake end(Claim& claim);
  // Nothing was done. Answers whether the lane's next work is for a thread apart, which saw nothing while it was
  // claimed.
  [[nodiscard]] bool put_back(Claim& claim);

  // As Executor::cancel().
  Status cancel(std::uint64_t value, Wake& wake);
  // No more jobs from now on. The first reason stays.
  void refuse(Status why);
  bool lost() const noexcept { return is_lost_.load(std::memory_order_acquire); }

  Timeline& timeline() noexcept { return timeline_; }
  const std::string& name() const noexcept { return name_; }
  std::uint64_t backlog_ns() const noexcept;
  std::uint32_t in_flight() const noexcept { return in_flight_.load(std::memory_order_relaxed); }
  std::uint64_t usual_run_ns() const noexcept { return run_average_.ns(); }

  std::shared_ptr<Device> device() const;  // null once it was let go
  bool serves(const std::shared_ptr<Device>& device) const;
  bool serves(const Device& device) const;

  // Lets Constants go that nobody holds any more; answers whether some are left.
  bool sweep();
  // Everything that belongs to the device goes. REQUIRES: idle().
  void let_go();
  // From now on whoever works for a lane sleeps for ever as soon as it comes back from the device: nothing that the
  // device may still touch is freed, and neither counters nor trace are used any more.
  void abandon();
  void park_if_abandoned() const;

 private:
  void finish(Slot& slot);
  Result<Measurement> outcome_of(Slot& slot);
  Status executor_cancelled(std::uint64_t value) const;
  void lose(const Status& cause);
  Status submit_alone(Slot& slot);
  void run_alone(Slot& slot);
  void read_back(Slot& slot, std::uint64_t device_since_ns, std::uint32_t jobs);
  std::uint64_t finished_at(std::uint64_t now);  // answers when the job before did
  Result<FenceResult> run_to_end(const Dispatch& dispatch);
  void fail(Slot& slot, Status why);
  void learn(const Slot& slot);

  const std::string name_;  // "the queue of device cpu"
  const std::string device_id_;
  const bool adaptive_;
  WorkCounters* const counters_;
  TraceSink* const trace_;
  Timeline timeline_;

  mutable std::mutex mutex_;  // guards what follows, up to the next blank line
  mutable std::condition_variable never_;
  std::shared_ptr<Device> device_;
  const std::weak_ptr<Device> identity_;
  std::vector<std::unique_ptr<Slot>> slots_;
  Ring ring_;
  Status refusal_;
  Status lost_;
  DepthController depth_;
  std::uint64_t last_finished_ns_ = 0;  // of what the device has worked on

  std::mutex constants_mutex_;
  std::optional<ConstantStore> constants_;

  std::vector<PassLaunch> batch_;  // the dispatch lane's
  RunAverage run_average_;         // learns under the lock
  UsualCopy upload_, readback_;
  std::atomic<std::uint64_t> device_ns_{UINT64_MAX};  // the usual; UINT64_MAX: unknown
  std::atomic<std::uint32_t> in_flight_{0};
  std::atomic<bool> is_lost_{false};
  std::atomic<bool> abandoned_{false};
};

}  // namespace kiln::executor
