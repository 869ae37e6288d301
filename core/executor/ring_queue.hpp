// RingQueue: the threads of one device: a submit thread, and up to three threads for the copies of large jobs. They run
// the lanes of a SlotPipeline: while the device runs one job, the next is uploaded and the previous is read back.
//
// The submit thread runs all lanes for jobs with copies shorter than a hand-over between threads. The first job with
// longer copies starts the other threads. While one of them reads a long result, the submit thread reads short
// unordered results behind it, and another thread reads long ones. If work never ends, stop() detaches the threads;
// they sleep for ever and hold the slots, tensors, programs and the device. Memory that a device may still write is
// leaked, not freed. Thread-safety: every method from any thread; stop() once. Ownership: shared between the executor
// and the threads.
#pragma once

#include "executor/slot_pipeline.hpp"
#include "executor/timeline.hpp"

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

namespace kiln::executor {

class RingQueue : public std::enable_shared_from_this<RingQueue> {
 public:
  // unavailable: no thread could be started. hooks: null: the system schedules. With hooks, every thread that calls a
  // method other than wait() is scheduled by them.
  static Result<std::shared_ptr<RingQueue>> start(std::shared_ptr<Device> device, const ExecutorContext& context,
                                                  std::shared_ptr<CompletionBell> bell,
                                                  SchedulingHooks* hooks = nullptr);

  // waits_next: see Submission; not with hooks. REQUIRES: the job was checked and is for this queue's device.
  Result<std::uint64_t> submit(Job job, Deadline deadline, std::uint64_t entered_ns, bool waits_next = false);
  Result<Measurement> wait(std::uint64_t value, Deadline deadline);
  Status cancel(std::uint64_t value);
  Timeline::State state(std::uint64_t value) { return pipeline_.timeline().state(value); }

  bool serves(const std::shared_ptr<Device>& device) const { return pipeline_.serves(device); }
  bool serves(const Device& device) const { return pipeline_.serves(device); }
  std::uint64_t backlog_ns() const noexcept { return pipeline_.backlog_ns(); }

  void request_stop();
  // Returns whether all jobs in flight finished before the deadline; false: they were abandoned. REQUIRES:
  // request_stop() was called.
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
  // The waiting thread does the work of the submit thread while its job is the only one and every step is short.
  void serve_waiter(std::uint64_t value, Deadline deadline);
  bool is_for_waiter(const std::shared_ptr<const KernelPlan>& plan);
  void note_length(std::uint64_t value, const Result<Measurement>& measured);
  std::optional<bool> own(Lane lane) const noexcept;
  void start_apart(bool upload, bool retire, bool beside);
  void put_back(Claim& claim);
  void finish(Claim& claim);
  void run(Claim& claim);  // REQUIRES: upload or dispatch
  // Whether the submit thread may read a short result before a long one, because another thread reads the long one.
  bool may_overtake() const noexcept { return has_thread_[index_of(Lane::retire)].load(std::memory_order_acquire); }
  bool await_device(std::uint64_t seen);
  bool await_work();
  void tell(const Wake& wake);
  void leave();
  bool ending() const;  // REQUIRES: the pipeline's mutex is held
  std::chrono::nanoseconds spin(std::chrono::nanoseconds longest) const noexcept;

  // Every wait and every wake-up between the threads uses these functions.
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
  Status ended_by_executor_;  // created in advance, since memory may be short at the end

  std::condition_variable slot_free_;
  std::condition_variable work_;                           // for the submit thread
  std::array<std::condition_variable, lane_count> apart_;  // for the others
  std::condition_variable ended_;
  // Under the pipeline's mutex.
  std::vector<std::thread> threads_;
  std::size_t running_ = 0;
  bool has_ended_ = false;

  std::atomic<bool> stopping_{false};
  // Whether each plan's last run was short, and the job whose run is measured next.
  std::mutex lengths_mutex_;
  std::map<std::weak_ptr<const KernelPlan>, bool, std::owner_less<>> was_short_;
  std::weak_ptr<const KernelPlan> measured_plan_;
  std::uint64_t measured_value_ = 0;

  Clock::duration last_wait_{0};  // of the submit thread, for a job that then finished
  std::atomic<std::uint64_t> for_waiter_{0};  // a job whose submit thread was not woken; 0: none
  std::atomic<std::uint64_t> news_{0};        // increases with each event for the submit thread
  std::array<std::atomic<bool>, lane_count> has_thread_{};
};

}  // namespace kiln::executor
