// RingQueue: one device's submit thread, and up to three more for the copies of large jobs, which serve the lanes of a
// SlotPipeline: while one job is on the device the next is uploaded and the one before comes back.
//
// The submit thread does everything itself for jobs whose copies are shorter than handing them over would be; the other
// threads are started by the first job that is longer. While one of them takes a long result, the submit thread takes
// a short one behind it that need not keep its order, and a thread more a long one. Thread-safety: every method from
// any thread; stop() once. Ownership: shared between the executor and the threads.
//
// Work that never ends: when stop() gives up on it, the threads are detached and sleep for ever, and keep the slots,
// tensors, programs and the device alive: memory that a device may still write is leaked, never freed.
#pragma once

#include "executor/completion_bell.hpp"
#include "executor/scheduling_hooks.hpp"
#include "executor/slot_pipeline.hpp"

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

namespace kiln::executor {

class RingQueue : public std::enable_shared_from_this<RingQueue> {
 public:
  // unavailable: no thread could be started. hooks: null leaves the schedule to the system; with them every thread that
  // calls a method but wait() is one of theirs.
  static Result<std::shared_ptr<RingQueue>> start(std::shared_ptr<Device> device, const ExecutorContext& context,
                                                  std::shared_ptr<CompletionBell> bell,
                                                  SchedulingHooks* hooks = nullptr);

  // REQUIRES: what is submitted was checked, and is for this queue's device.
  // waits_next: see Submission. Not with hooks.
  Result<std::uint64_t> submit(Job job, Deadline deadline, std::uint64_t entered_ns, bool waits_next = false);
  Result<Measurement> wait(std::uint64_t value, Deadline deadline);
  Status cancel(std::uint64_t value);
  Timeline::State state(std::uint64_t value) { return pipeline_.timeline().state(value); }
  Status gone(std::uint64_t value) { return pipeline_.timeline().gone(value); }

  bool serves(const std::shared_ptr<Device>& device) const { return pipeline_.serves(device); }
  bool serves(const Device& device) const { return pipeline_.serves(device); }
  std::uint64_t backlog_ns() const noexcept { return pipeline_.backlog_ns(); }

  void request_stop();
  // Whether everything in flight was finished before the deadline; false: it was abandoned. REQUIRES: request_stop()
  // first.
  bool stop(Deadline deadline);

  const std::string& name() const noexcept { return pipeline_.name(); }

 private:
  RingQueue(std::shared_ptr<Device> device, const ExecutorContext& context, std::shared_ptr<CompletionBell> bell,
            SchedulingHooks* hooks);

  Status start_thread(void (RingQueue::*serve)());
  void serve_submit();
  void serve_upload() { serve_apart(Lane::upload); }
  void serve_retire() { serve_apart(Lane::retire); }
  void serve_beside() { serve_apart(Lane::beside); }
  void serve_apart(Lane lane);
  bool advance(Lane lane, std::optional<bool> apart);
  // The waiting thread does what the submit thread would, as long as its job is alone and nothing takes long.
  void serve_waiter(std::uint64_t value, Deadline deadline);
  bool was_short(const std::shared_ptr<const KernelPlan>& plan);
  void note_length(std::uint64_t value, const Result<Measurement>& measured);
  std::optional<bool> own(Lane lane) const noexcept;
  void start_apart(bool upload, bool retire, bool beside);
  void put_back(Claim& claim);
  void finish(Claim& claim);
  void run(Claim& claim);  // REQUIRES: upload or dispatch
  // The submit thread, a short result: there is somebody else who takes long ones.
  bool may_overtake() const noexcept { return has_thread_[index_of(Lane::retire)].load(std::memory_order_acquire); }
  bool await_device(std::uint64_t seen);
  bool await_work();
  void tell(const Wake& wake);
  void leave();
  bool ending() const;  // REQUIRES: the pipeline's mutex is held
  std::chrono::nanoseconds spin(std::chrono::nanoseconds longest) const noexcept;

  // How the threads wait for and wake one another: every wait and every wake-up goes through these.
  void step() const noexcept {
    if (hooks_ != nullptr) hooks_->step();
  }
  template <class Ready>
  void sleep(std::condition_variable& place, std::unique_lock<std::mutex>& lock, Ready ready);
  template <class Ready>
  void sleep_until(std::condition_variable& place, std::unique_lock<std::mutex>& lock, Deadline deadline, Ready ready);
  void wake_one(std::condition_variable& place) noexcept;
  void wake_all(std::condition_variable& place) noexcept;

  SlotPipeline pipeline_;
  const std::shared_ptr<CompletionBell> bell_;
  SchedulingHooks* const hooks_;
  const bool wraps_;
  Status ended_by_executor_;  // made in advance: at the end there may be no memory for it

  std::condition_variable slot_free_;
  std::condition_variable work_;                           // for the submit thread
  std::array<std::condition_variable, lane_count> apart_;  // for the others
  std::condition_variable ended_;
  // Under the pipeline's mutex.
  std::vector<std::thread> threads_;
  std::size_t running_ = 0;
  bool has_ended_ = false;

  std::atomic<bool> stopping_{false};
  // Plans whose last run was short, and the job whose run is measured next.
  std::mutex lengths_mutex_;
  std::set<std::weak_ptr<const KernelPlan>, std::owner_less<>> short_plans_;
  std::weak_ptr<const KernelPlan> measured_plan_;
  std::uint64_t measured_value_ = 0;

  std::atomic<std::uint64_t> for_waiter_{0};  // a job that the submit thread was not woken for; 0: none
  std::atomic<std::uint64_t> news_{0};        // grows with whatever the submit thread has to look at
  std::array<std::atomic<bool>, lane_count> has_thread_{};
};

}  // namespace kiln::executor
