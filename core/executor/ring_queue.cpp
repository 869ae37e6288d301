#include "executor/ring_queue.hpp"

#include "executor/spin.hpp"

#include <algorithm>
#include <exception>
#include <system_error>

namespace kiln::executor {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// Where the device works in host memory a job may last less than waking a thread does (about 50 us), so both sides look
// for a moment before they sleep. Elsewhere the trip to the device is longer than that.
constexpr microseconds thread_spin{50};
constexpr microseconds waiter_spin{20};

// A wait for the device is cut into slices, so that a job that arrives meanwhile is uploaded: short ones at first, then
// a share of what has been waited already.
constexpr microseconds least_slice{200};
constexpr milliseconds most_slice{5};

constexpr std::chrono::seconds sweep_interval{1};  // of Constants that went while the queue was idle

std::chrono::nanoseconds spin_of(const Device& device, std::chrono::nanoseconds spin) {
  const bool worth_it = device.info().wraps_host_memory && std::thread::hardware_concurrency() > 1;
  return worth_it ? spin : std::chrono::nanoseconds::zero();
}

}  // namespace

Result<std::shared_ptr<RingQueue>> RingQueue::start(std::shared_ptr<Device> device, const ExecutorContext& context) {
  std::shared_ptr<RingQueue> queue(new RingQueue(std::move(device), context));
  try {
    queue->thread_ = std::thread([queue] {
      queue->serve();
      queue->leave();
    });
  } catch (const std::system_error& error) {
    return unavailable(queue->name_ + ": no submit thread: " + error.what());
  }
  return queue;
}

RingQueue::RingQueue(std::shared_ptr<Device> device, const ExecutorContext& context)
    : name_("the queue of device " + device->info().id),
      thread_spin_(spin_of(*device, thread_spin)),
      waiter_spin_(spin_of(*device, waiter_spin)),
      counters_(context.counters),
      timeline_(name_),
      constants_(std::in_place, *device),
      device_(device),
      identity_(device) {
  for (std::uint32_t i = 0; i < context.config.in_flight; ++i) {
    slots_.push_back(std::make_unique<Slot>());
    free_.push_back(slots_.back().get());
  }
}

Result<std::uint64_t> RingQueue::submit(Submission submission, std::uint64_t entered_ns) {
  std::uint64_t value = 0;
  {
    std::unique_lock lock(mutex_);
    const auto decided = [&] { return !free_.empty() || !refusal_.ok(); };
    if (submission.deadline.at == Deadline::never().at) {
      slot_free_.wait(lock, decided);
    } else {
      slot_free_.wait_until(lock, submission.deadline.at, decided);
    }
    if (!refusal_.ok()) return refusal_;
    if (free_.empty()) {
      return timed_out(name_ + ": no slot came free before the job's deadline; " + std::to_string(slots_.size()) +
                       " of " + std::to_string(slots_.size()) + " in flight");
    }
    Slot* const slot = free_.back();
    free_.pop_back();
    value = timeline_.open(submission.deadline);
    slot->accept(std::move(submission), value, entered_ns);
    pending_.push_back(slot);
    pending_count_.store(pending_.size(), std::memory_order_release);
    in_flight_.fetch_add(1, std::memory_order_relaxed);
  }
  work_.notify_one();
  return value;
}

Result<Measurement> RingQueue::wait(std::uint64_t value, Deadline deadline) {
  return timeline_.wait(value, deadline, waiter_spin_);
}

bool RingQueue::serves(const std::shared_ptr<Device>& device) const {
  const std::lock_guard lock(mutex_);
  if (device_ != nullptr) return device_ == device;
  // A lost device that its owner still holds; never another one that has come to lie at the same address.
  return !identity_.expired() && !identity_.owner_before(device) && !device.owner_before(identity_);
}

bool RingQueue::serves(const Device& device) const {
  const std::lock_guard lock(mutex_);
  return device_.get() == &device;
}

std::uint64_t RingQueue::backlog_ns() const noexcept {
  return in_flight_.load(std::memory_order_relaxed) * run_average_.ns();
}

void RingQueue::request_stop() {
  {
    const std::lock_guard lock(mutex_);
    if (refusal_.ok()) refusal_ = unavailable(name_ + ": the executor is being destroyed");
    stopping_.store(true, std::memory_order_release);
  }
  work_.notify_one();
  slot_free_.notify_all();
}

bool RingQueue::stop(Deadline deadline) {
  std::unique_lock lock(mutex_);
  const auto over = [&] { return has_ended_; };
  if (deadline.at == Deadline::never().at) {
    ended_.wait(lock, over);
  } else {
    ended_.wait_until(lock, deadline.at, over);
  }
  const bool finished = has_ended_;
  if (!finished) abandoned_.store(true, std::memory_order_release);
  lock.unlock();
  if (finished) {
    thread_.join();
  } else {
    thread_.detach();
  }
  return finished;
}

void RingQueue::serve() {
  for (;;) {
    park_if_abandoned();
    // What is finished already goes out first: its waiter shall not wait for the next job's upload, nor, on a device
    // that works inside submit(), for the next job.
    if (!running_.empty() && finish_oldest({Clock::now()})) continue;
    if (!constants_) return;  // the device is lost
    if (Slot* const slot = next_pending()) {
      begin(*slot);
    } else if (!running_.empty()) {
      const Clock::time_point since = Clock::now();
      std::chrono::nanoseconds slice = least_slice;
      while (pending_count_.load(std::memory_order_acquire) == 0 && !finish_oldest(Deadline::after(slice))) {
        slice = std::clamp<std::chrono::nanoseconds>((Clock::now() - since) / 4, least_slice, most_slice);
      }
      if (!constants_) return;
    } else if (!await_work()) {
      return;
    }
  }
}

bool RingQueue::await_work() {
  const auto something = [&] {
    return pending_count_.load(std::memory_order_acquire) != 0 || stopping_.load(std::memory_order_acquire);
  };
  spin_until(thread_spin_, something);
  while (!something()) {
    constants_->sweep();
    std::unique_lock lock(mutex_);
    if (constants_->empty()) {
      work_.wait(lock, something);
    } else {
      work_.wait_for(lock, sweep_interval, something);
    }
  }
  return pending_count_.load(std::memory_order_acquire) != 0;
}

Slot* RingQueue::next_pending() {
  if (pending_count_.load(std::memory_order_acquire) == 0) return nullptr;
  const std::lock_guard lock(mutex_);
  Slot* const slot = pending_.front();
  pending_.pop_front();
  pending_count_.store(pending_.size(), std::memory_order_release);
  return slot;
}

void RingQueue::begin(Slot& slot) {
  running_.push_back(&slot);
  try {
    Device& device = *device_;
    slot.failure =
        slot.make_constants(device, *constants_, [this](const Dispatch& dispatch) { return run_to_end(dispatch); });
    if (slot.failure.ok()) slot.failure = slot.upload(device);
    if (slot.failure.ok()) slot.failure = slot.dispatch(device);
  } catch (const std::exception& error) {
    slot.failure = unavailable(std::string("the job could not be begun: ") + error.what());
  }
  park_if_abandoned();
  count_packed(slot.packed());
  if (slot.failure.code == StatusCode::device_lost) lose(slot.failure);
}

Status RingQueue::run_to_end(const Dispatch& dispatch) {
  const auto value = device_->submit(dispatch);
  if (!value) return value.error();
  for (;;) {
    const auto result = device_->wait(*value, Deadline::after(most_slice));
    park_if_abandoned();
    if (result) return {};
    if (result.error().code != StatusCode::timeout) return result.error();
  }
}

bool RingQueue::finish_oldest(Deadline patience) {
  Slot& slot = *running_.front();
  if (!slot.failure.ok()) {
    finish(slot, {});
    return true;
  }
  const auto result = device_->wait(slot.device_value(), patience);
  park_if_abandoned();
  if (result) {
    finish(slot, *result);
    return true;
  }
  if (result.error().code == StatusCode::timeout) return false;
  if (result.error().code == StatusCode::device_lost) {
    lose(result.error());
  } else {
    slot.failure = result.error();
    finish(slot, {});
  }
  return true;
}

void RingQueue::finish(Slot& slot, const FenceResult& result) {
  running_.pop_front();
  if (slot.failure.ok()) slot.failure = slot.readback();
  Result<Measurement> outcome =
      slot.failure.ok() ? Result<Measurement>(slot.measured(result)) : Result<Measurement>(slot.failure.within(name_));
  run_average_.add(slot.started_ns(), now_ns(),
                   slot.failure.ok() ? RunAverage::Outcome::finished : RunAverage::Outcome::failed);
  const std::uint64_t value = slot.value();
  slot.release();
  {
    const std::lock_guard lock(mutex_);
    free_.push_back(&slot);
    in_flight_.fetch_sub(1, std::memory_order_relaxed);
  }
  slot_free_.notify_one();
  timeline_.finish(value, std::move(outcome));
}

void RingQueue::lose(const Status& cause) {
  {
    const std::lock_guard lock(mutex_);
    refusal_ = device_lost(name_ + ": the device is lost: " + cause.message);
    running_.insert(running_.end(), pending_.begin(), pending_.end());
    pending_.clear();
    pending_count_.store(0, std::memory_order_release);
  }
  while (!running_.empty()) {
    Slot& slot = *running_.front();
    if (slot.failure.ok() || slot.failure.code != StatusCode::device_lost) slot.failure = device_lost(cause.message);
    finish(slot, {});
  }
  slot_free_.notify_all();
  constants_.reset();
}

void RingQueue::count_packed(std::uint64_t packed) {
  if (packed == 0 || counters_ == nullptr) return;
  const std::lock_guard lock(mutex_);
  // The counters may be gone once the queue has been abandoned.
  if (!abandoned_.load(std::memory_order_relaxed)) counters_->prepared.fetch_add(packed, std::memory_order_relaxed);
}

// Everything that belongs to the device goes here, on this thread, before stop() answers.
void RingQueue::leave() {
  for (const auto& slot : slots_) slot->drop_buffers();
  constants_.reset();
  std::shared_ptr<Device> device;
  {
    const std::lock_guard lock(mutex_);
    device.swap(device_);
  }
  device.reset();
  {
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
  }
  ended_.notify_all();
}

void RingQueue::park_if_abandoned() {
  if (!abandoned_.load(std::memory_order_acquire)) return;
  std::unique_lock lock(mutex_);
  never_.wait(lock, [] { return false; });
}

}  // namespace kiln::executor
