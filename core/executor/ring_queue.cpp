#include "executor/ring_queue.hpp"

#include "executor/timeline.hpp"

#include <kiln/host_processor.hpp>
#include <kiln/process_limits.hpp>
#include <kiln/stop_scope.hpp>

#include <algorithm>

namespace kiln::executor {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// A job can be shorter than waking a thread (about 50 us), so both sides spin before they sleep if the device works in
// host memory or recent jobs were that short.
constexpr microseconds thread_spin{50};
constexpr microseconds waiter_spin{20};
constexpr std::uint64_t short_run_ns = 50'000;

// A wait for the device is split into slices, so that a new job is uploaded meanwhile. A slice is a quarter of the time
// waited, or of the last job's whole wait.
constexpr microseconds least_slice{200};
constexpr milliseconds most_slice{5};
constexpr milliseconds waiter_slice{1};          // of a waiting thread that does the work of its own job
constexpr std::uint64_t short_job_ns = 500'000;  // a device may work inside submit(), where a stop is not noticed
constexpr std::uint64_t quick_submit_ns = 50'000;  // a submit() that only hands over; one that works takes longer
constexpr std::size_t most_known_plans = 1024;
constexpr milliseconds apart_slice{100};  // of a thread without other work

constexpr std::chrono::hours scheduled_slice{1};  // if hooks decide when the wait ends

constexpr milliseconds stop_poll{50};  // how long a wait for a slot lasts before the stop flag is read again

constexpr std::chrono::seconds sweep_interval{1};  // of Constants that were destroyed while the queue was idle

}  // namespace

Result<std::shared_ptr<RingQueue>> RingQueue::start(std::shared_ptr<Device> device, const ExecutorContext& context,
                                                    std::shared_ptr<CompletionBell> bell, SchedulingHooks* hooks) {
  std::shared_ptr<RingQueue> queue(new RingQueue(std::move(device), context, std::move(bell), hooks));
  if (Status status = queue->start_thread(&RingQueue::serve_submit); !status.ok()) {
    return status.within(queue->name());
  }
  return queue;
}

RingQueue::RingQueue(std::shared_ptr<Device> device, const ExecutorContext& context,
                     std::shared_ptr<CompletionBell> bell, SchedulingHooks* hooks)
    : pipeline_(device, context),
      bell_(std::move(bell)),
      hooks_(hooks),
      wraps_(device->info().wraps_host_memory),
      ended_by_executor_(unavailable(name() + ": the executor is being destroyed")) {}

template <class Ready>
void RingQueue::sleep(std::condition_variable& place, std::unique_lock<std::mutex>& lock, Ready ready) {
  if (hooks_ == nullptr) return place.wait(lock, ready);
  while (!ready()) hooks_->sleep(&place, lock);
}

template <class Ready>
void RingQueue::sleep_until(std::condition_variable& place, std::unique_lock<std::mutex>& lock, Deadline deadline,
                            Ready ready) {
  // wait_until is not called with an endless deadline: conversion to the clock of the condition could overflow.
  if (hooks_ != nullptr || deadline.at == Deadline::never().at) return sleep(place, lock, ready);
  place.wait_until(lock, deadline.at, ready);
}

void RingQueue::wake_one(std::condition_variable& place) noexcept {
  if (hooks_ == nullptr) return place.notify_one();
  hooks_->wake(&place, SchedulingHooks::Whom::one);
}

void RingQueue::wake_all(std::condition_variable& place) noexcept {
  if (hooks_ == nullptr) return place.notify_all();
  hooks_->wake(&place, SchedulingHooks::Whom::all);
}

Status RingQueue::start_thread(void (RingQueue::*serve)()) try {
  const std::lock_guard lock(pipeline_.mutex());
  if (!threads_.empty() && running_ == 0) return unavailable("the queue has ended");
  threads_.reserve(lane_count);
  if (hooks_ != nullptr) hooks_->start();
  auto thread = kiln::start_thread([queue = shared_from_this(), serve] {
    SchedulingHooks* const hooks = queue->hooks_;
    if (hooks != nullptr) hooks->begin();
    ((*queue).*serve)();
    queue->leave();
    if (hooks != nullptr) hooks->end();
  });
  if (!thread) return std::move(thread).error();
  threads_.push_back(std::move(*thread));
  ++running_;
  return {};
} catch (...) {
  return caught();
}

std::chrono::nanoseconds RingQueue::spin(std::chrono::nanoseconds longest) const noexcept {
  const std::uint64_t usual = pipeline_.usual_run_ns();
  const bool worth_it = wraps_ || (usual != 0 && usual < short_run_ns);
  static const bool alone = host_cores() < 2;
  return worth_it && !alone ? longest : std::chrono::nanoseconds::zero();
}

Result<std::uint64_t> RingQueue::submit(Job job, Deadline deadline, std::uint64_t entered_ns, bool waits_next) {
  std::uint64_t value = 0;
  Wake wake;
  bool upload_apart = false;
  bool retire_apart = false;
  bool beside_apart = false;
  std::shared_ptr<const KernelPlan> plan;
  if (waits_next && hooks_ == nullptr) plan = std::get<Submission>(job).plan;
  const bool for_waiter = plan != nullptr && is_for_waiter(plan);
  step();
  {
    std::unique_lock lock(pipeline_.mutex());
    Slot* slot = nullptr;
    const auto decided = [&] { return !pipeline_.refusal().ok() || (slot = pipeline_.take_free()) != nullptr; };
    const std::atomic<bool>* const stop = current_stop();
    const auto stopped = [&] { return stop != nullptr && stop->load(); };
    do {
      const Deadline look = stop == nullptr ? deadline : Deadline{std::min(deadline.at, Deadline::after(stop_poll).at)};
      sleep_until(slot_free_, lock, look, decided);
    } while (slot == nullptr && pipeline_.refusal().ok() && !stopped() && !deadline.passed());
    if (!pipeline_.refusal().ok()) return pipeline_.refusal();
    if (slot == nullptr && stopped()) return cancelled(name() + ": stopped on request while no slot was free");
    if (slot == nullptr) {
      return timed_out(name() + ": no slot became free before the job's deadline: " +
                       std::to_string(pipeline_.depth()) + " of " + std::to_string(pipeline_.depth()) + " in flight");
    }
    value = pipeline_.enter(*slot, std::move(job), deadline, entered_ns, wake);
    upload_apart = slot->upload_apart;
    retire_apart = slot->readback_apart;
    beside_apart = retire_apart && !slot->ordered;
    if (plan != nullptr) {
      const std::lock_guard lengths(lengths_mutex_);
      measured_plan_ = plan;
      measured_value_ = value;
    }
    if (for_waiter && !upload_apart && !retire_apart && pipeline_.in_flight() == 1) {
      for_waiter_.store(value, std::memory_order_release);
      return value;
    }
  }
  step();
  if (upload_apart || retire_apart) start_apart(upload_apart, retire_apart, beside_apart);
  tell(wake);
  return value;
}

void RingQueue::start_apart(bool upload, bool retire, bool beside) {
  const auto start = [&](Lane lane, void (RingQueue::*serve)()) {
    std::atomic<bool>& has = has_thread_[index_of(lane)];
    if (has.exchange(true, std::memory_order_acq_rel)) return;
    if (start_thread(serve).ok()) return;
    // Without the thread, the submit thread continues this lane's work. Under the lock, since it may be about to sleep.
    const std::lock_guard lock(pipeline_.mutex());
    has.store(false, std::memory_order_release);
  };
  if (upload) start(Lane::upload, &RingQueue::serve_upload);
  if (retire) start(Lane::retire, &RingQueue::serve_retire);
  if (beside) start(Lane::beside, &RingQueue::serve_beside);
}

Result<Measurement> RingQueue::wait(std::uint64_t value, Deadline deadline) {
  std::uint64_t expected = value;
  if (for_waiter_.compare_exchange_strong(expected, 0, std::memory_order_acq_rel)) serve_waiter(value, deadline);
  auto measured = pipeline_.timeline().wait(value, deadline, spin(waiter_spin));
  note_length(value, measured);
  return measured;
}

// Of a plan that did not run yet, nothing may take long before the device has the job: no packing, and no submit() that
// works.
bool RingQueue::is_for_waiter(const std::shared_ptr<const KernelPlan>& plan) {
  const std::lock_guard lock(lengths_mutex_);
  const auto known = was_short_.find(plan);
  if (known != was_short_.end()) return known->second;
  return plan->prepare.empty() && pipeline_.usual_submit_ns() < quick_submit_ns;
}

void RingQueue::note_length(std::uint64_t value, const Result<Measurement>& measured) {
  const std::lock_guard lock(lengths_mutex_);
  if (value != measured_value_ || !measured) return;
  measured_value_ = 0;
  if (was_short_.size() >= most_known_plans) was_short_.clear();
  was_short_.insert_or_assign(measured_plan_,
                              measured->upload_ns + measured->device_ns + measured->readback_ns <= short_job_ns);
}

Status RingQueue::cancel(std::uint64_t value) {
  Wake wake;
  step();
  Status status = pipeline_.cancel(value, wake);
  step();
  tell(wake);
  bell_->ring();
  return status;
}

// Notifying a thread that does not sleep is cheap.
void RingQueue::tell(const Wake& wake) {
  news_.fetch_add(1, std::memory_order_acq_rel);
  step();
  const bool all = stopping_.load(std::memory_order_acquire) || pipeline_.lost();
  wake_one(work_);
  for (const Lane lane : {Lane::upload, Lane::retire, Lane::beside}) {
    if (all || wake.lane(lane)) wake_one(apart_[index_of(lane)]);
  }
  if (all || wake.submitter) wake_all(slot_free_);
}

void RingQueue::request_stop() {
  pipeline_.refuse(std::move(ended_by_executor_));
  {
    const std::lock_guard lock(pipeline_.mutex());
    stopping_.store(true, std::memory_order_release);
  }
  step();
  tell({});
}

bool RingQueue::stop(Deadline deadline) {
  std::unique_lock lock(pipeline_.mutex());
  const auto over = [&] { return has_ended_; };
  sleep_until(ended_, lock, deadline, over);
  const bool finished = has_ended_;
  lock.unlock();
  if (!finished) pipeline_.abandon();
  for (std::thread& thread : threads_) {
    if (finished) {
      thread.join();
    } else {
      thread.detach();
    }
  }
  return finished;
}

bool RingQueue::ending() const {
  return (stopping_.load(std::memory_order_acquire) || pipeline_.lost()) && pipeline_.idle();
}

std::optional<bool> RingQueue::own(Lane lane) const noexcept {
  if (!has_thread_[index_of(lane)].load(std::memory_order_acquire)) return std::nullopt;
  return false;
}

bool RingQueue::advance(Lane lane, std::optional<bool> apart) {
  step();
  Claim claim = pipeline_.begin(lane, apart);
  if (!claim) return false;
  step();
  if (lane == Lane::upload || lane == Lane::dispatch) {
    run(claim);
  } else if (!pipeline_.retire(claim, {Clock::now()})) {
    put_back(claim);
    return false;
  }
  finish(claim);
  return true;
}

void RingQueue::run(Claim& claim) {
  if (claim.lane == Lane::upload) {
    pipeline_.upload(claim);
  } else {
    pipeline_.dispatch(claim);
  }
}

void RingQueue::serve_waiter(std::uint64_t value, Deadline deadline) {
  for (const Lane lane : {Lane::upload, Lane::dispatch, Lane::retire}) {
    Claim claim = pipeline_.begin(lane, own(lane));
    if (!claim) break;  // another job arrived and woke the submit thread
    if (lane != Lane::retire) {
      run(claim);
    } else if (!pipeline_.retire(claim, {std::min(deadline.at, Deadline::after(waiter_slice).at)})) {
      put_back(claim);
      break;
    }
    const Wake wake = pipeline_.end(claim);
    if (wake.submitter) wake_all(slot_free_);
    bell_->ring();
  }
  const bool over = pipeline_.timeline().state(value) == Timeline::State::finished && pipeline_.in_flight() == 0;
  if (!over || pipeline_.lost()) tell({});
}

void RingQueue::finish(Claim& claim) {
  step();
  const Wake wake = pipeline_.end(claim);
  step();
  tell(wake);
  bell_->ring();
}

// A lane's own thread may have started while the submit thread held the claim. It found no work and sleeps, and the
// returned claim is no longer work of the submit thread.
void RingQueue::put_back(Claim& claim) {
  step();
  const bool for_another = pipeline_.put_back(claim);
  step();
  if (for_another) wake_one(apart_[index_of(claim.lane)]);
}

void RingQueue::serve_submit() {
  for (;;) {
    pipeline_.park_if_abandoned();
    const std::uint64_t seen = news_.load(std::memory_order_acquire);
    // Finished jobs are reported first: their waiters must not wait for the next upload or, on a device that works
    // inside submit(), for the next job.
    if (advance(Lane::retire, own(Lane::retire)) || (may_overtake() && advance(Lane::beside, false))) continue;
    const bool uploaded = advance(Lane::upload, own(Lane::upload));
    if (advance(Lane::dispatch, std::nullopt) || uploaded) continue;
    if (await_device(seen)) continue;
    if (!await_work()) return;
  }
}

// Waits until the oldest job has finished or there is other work. false: this thread has no job to wait for.
bool RingQueue::await_device(std::uint64_t seen) {
  Claim claim = pipeline_.begin(Lane::retire, own(Lane::retire));
  step();
  if (!claim && may_overtake()) claim = pipeline_.begin(Lane::beside, false);
  if (!claim) return false;
  const Clock::time_point since = Clock::now();
  bool finished = false;
  const auto slice = [&]() -> std::chrono::nanoseconds {
    if (hooks_ != nullptr) return scheduled_slice;
    return std::clamp<std::chrono::nanoseconds>(std::max(Clock::now() - since, last_wait_) / 4, least_slice,
                                                most_slice);
  };
  const auto news = [&] { return news_.load(std::memory_order_acquire) != seen; };
  step();
  while (!news() && !(finished = pipeline_.retire(claim, Deadline::after(slice())))) {
  }
  if (!finished) {
    put_back(claim);
    return true;
  }
  last_wait_ = Clock::now() - since;
  finish(claim);
  return true;
}

// false: no more work will arrive.
bool RingQueue::await_work() {
  const std::uint64_t seen = news_.load(std::memory_order_acquire);
  const auto mine = [&](Lane lane) {
    const auto apart = own(lane);
    return pipeline_.ready(lane) && (!apart || pipeline_.next_is_apart(lane) == *apart);
  };
  const auto something = [&] {
    return mine(Lane::upload) || mine(Lane::dispatch) || mine(Lane::retire) ||
           (may_overtake() && pipeline_.ready(Lane::beside) && !pipeline_.next_is_apart(Lane::beside)) || ending();
  };
  {
    const std::lock_guard lock(pipeline_.mutex());
    if (something()) return !ending();
  }
  if (spin_until(spin(thread_spin), [&] { return news_.load(std::memory_order_acquire) != seen; })) return true;
  for (;;) {
    step();
    const bool left = pipeline_.sweep();
    std::unique_lock lock(pipeline_.mutex());
    sleep_until(work_, lock, left ? Deadline::after(sweep_interval) : Deadline::never(), something);
    if (something()) return !ending();
  }
}

void RingQueue::serve_apart(Lane lane) {
  for (;;) {
    {
      std::unique_lock lock(pipeline_.mutex());
      const auto its = [&] { return pipeline_.ready(lane) && pipeline_.next_is_apart(lane); };
      sleep(apart_[index_of(lane)], lock, [&] { return its() || ending(); });
      if (!its()) return;
    }
    step();
    pipeline_.park_if_abandoned();
    Claim claim = pipeline_.begin(lane, true);
    if (!claim) continue;
    step();
    if (lane == Lane::upload) {
      pipeline_.upload(claim);
    } else {
      while (!pipeline_.retire(claim, Deadline::after(hooks_ != nullptr ? scheduled_slice : apart_slice))) {
      }
    }
    finish(claim);
  }
}

// The last thread releases everything that belongs to the device, before stop() returns.
void RingQueue::leave() {
  step();
  {
    const std::lock_guard lock(pipeline_.mutex());
    if (--running_ != 0) return;
  }
  pipeline_.let_go();
  {
    const std::lock_guard lock(pipeline_.mutex());
    has_ended_ = true;
  }
  wake_all(ended_);  // stop() joins this thread, so no waiter may continue before it has ended
}

}  // namespace kiln::executor
