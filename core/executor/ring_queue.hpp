// RingQueue: one device's submit thread and its slots: uploads and submits the next job before it waits for the one
// before, and finishes jobs in order.
//
// Thread-safety: every method from any thread; stop() once. Ownership: shared between the executor and the submit
// thread. It keeps the device until it stops or the device is lost; the timeline with its results stays as long as the
// queue.
//
// Work that never ends: when stop() gives up on it, the thread is detached and sleeps for ever, and keeps the slots,
// tensors, programs and the device alive: memory that a device may still write is leaked, never freed.
#pragma once

#include "executor/constant_store.hpp"
#include "executor/run_average.hpp"
#include "executor/slot.hpp"
#include "executor/timeline.hpp"

#include <kiln/executor.hpp>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace kiln::executor {

class RingQueue {
 public:
  // unavailable: no thread could be started.
  static Result<std::shared_ptr<RingQueue>> start(std::shared_ptr<Device> device, const ExecutorContext& context);

  // REQUIRES: check(submission).ok() and serves(submission.device).
  Result<std::uint64_t> submit(Submission submission, std::uint64_t entered_ns);
  Result<Measurement> wait(std::uint64_t value, Deadline deadline);

  bool serves(const std::shared_ptr<Device>& device) const;
  bool serves(const Device& device) const;
  std::uint64_t backlog_ns() const noexcept;

  void request_stop();
  // Whether everything in flight was finished before the deadline; false: it was abandoned. REQUIRES: request_stop()
  // first.
  bool stop(Deadline deadline);

  const std::string& name() const noexcept { return name_; }

 private:
  RingQueue(std::shared_ptr<Device> device, const ExecutorContext& context);

  void serve();
  bool await_work();
  Slot* next_pending();
  void begin(Slot& slot);
  Status run_to_end(const Dispatch& dispatch);
  bool finish_oldest(Deadline patience);
  void finish(Slot& slot, const FenceResult& result);
  void lose(const Status& cause);
  void count_packed(std::uint64_t packed);
  void leave();
  void park_if_abandoned();

  const std::string name_;  // "the queue of device cpu"
  const std::chrono::nanoseconds thread_spin_;
  const std::chrono::nanoseconds waiter_spin_;
  WorkCounters* const counters_;
  Timeline timeline_;

  // Of the submit thread alone.
  std::optional<ConstantStore> constants_;
  std::deque<Slot*> running_;  // begun, oldest first

  // Shared, under mutex_.
  mutable std::mutex mutex_;
  std::condition_variable work_;
  std::condition_variable slot_free_;
  std::condition_variable ended_;
  std::condition_variable never_;
  std::shared_ptr<Device> device_;  // empty once the thread has ended
  const std::weak_ptr<Device> identity_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<Slot*> free_;
  std::deque<Slot*> pending_;
  Status refusal_;  // why no more jobs are taken
  bool has_ended_ = false;

  std::atomic<std::size_t> pending_count_{0};
  std::atomic<std::size_t> in_flight_{0};
  RunAverage run_average_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> abandoned_{false};
  std::thread thread_;
};

}  // namespace kiln::executor
