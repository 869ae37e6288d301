#include "executor/slot_pipeline.hpp"

#include <algorithm>
#include <exception>
#include <utility>

namespace kiln::executor {
namespace {

// Passing a job to another thread and back costs two wake-ups of 10 to 50 us each.
constexpr std::uint64_t worth_a_thread_ns = 40'000;
// Waiting jobs with a shorter device time share a submission.
constexpr std::uint64_t small_ns = 20'000;

std::vector<std::unique_ptr<Slot>> make_slots(std::uint32_t count) {
  std::vector<std::unique_ptr<Slot>> slots;
  for (std::uint32_t i = 0; i < count; ++i) slots.push_back(std::make_unique<Slot>(i));
  return slots;
}

std::vector<Seat*> seats_of(const std::vector<std::unique_ptr<Slot>>& slots) {
  std::vector<Seat*> seats;
  for (const auto& slot : slots) seats.push_back(slot.get());
  return seats;
}

bool takes_long(std::uint64_t bytes, const UsualCopy& usual) noexcept { return usual.ns(bytes) >= worth_a_thread_ns; }

}  // namespace

SlotPipeline::SlotPipeline(std::shared_ptr<Device> device, const ExecutorContext& context)
    : name_("the queue of device " + device->info().id),
      device_id_(device->info().id),
      adaptive_(context.config.adaptive_depth),
      counters_(context.counters),
      trace_(context.trace),
      timeline_(name_),
      device_(device),
      identity_(device),
      slots_(make_slots(context.config.in_flight)),
      ring_(seats_of(slots_)),
      depth_(context.config.in_flight),
      constants_(std::in_place, *device) {
  if (adaptive_) ring_.set_depth(std::min(depth_.depth(), context.config.in_flight));
}

std::uint64_t SlotPipeline::enter(Slot& slot, Job job, Deadline deadline, std::uint64_t entered_ns, Wake& wake) {
  const std::uint64_t value = timeline_.open(deadline);
  slot.value = value;
  slot.at.entered = entered_ns;
  slot.at.accepted = device_->clock_ns();
  std::visit([&](auto& what) { slot.accept(std::move(what)); }, job);
  slot.upload_apart = takes_long(slot.work().upload_bytes(*device_), upload_);
  slot.readback_apart = takes_long(slot.work().readback_bytes(*device_), readback_);
  slot.small = !slot.upload_apart && !slot.readback_apart && device_ns_.load(std::memory_order_relaxed) < small_ns &&
               slot.work().may_share(*device_);
  in_flight_.fetch_add(1, std::memory_order_relaxed);
  wake = ring_.enter(slot);
  return value;
}

bool SlotPipeline::next_is_apart(Lane lane) const noexcept {
  const auto* const slot = static_cast<const Slot*>(ring_.next(lane));
  if (slot == nullptr || lane == Lane::dispatch) return false;
  return lane == Lane::upload ? slot->upload_apart : slot->readback_apart;
}

Claim SlotPipeline::begin(Lane lane, std::optional<bool> apart) {
  const std::lock_guard lock(mutex_);
  if (apart && ring_.ready(lane) && next_is_apart(lane) != *apart) return {lane, {}};
  return ring_.claim(lane);
}

bool SlotPipeline::put_back(Claim& claim) {
  const std::lock_guard lock(mutex_);
  ring_.put_back(claim);
  return next_is_apart(claim.lane);
}

Wake SlotPipeline::end(Claim& claim) {
  SeatQueue finished;
  if (claim.lane != Lane::retire && claim.lane != Lane::beside) {
    Wake wake;
    {
      const std::lock_guard lock(mutex_);
      wake = ring_.pass_on(claim, finished);
    }
    while (!finished.empty()) {
      finish(*static_cast<Slot*>(finished.pop_front()));
      wake.submitter = true;
    }
    return wake;
  }
  // Results appear after the slots are free and the jobs are released, and before later results: both lanes finish
  // under one lock.
  const std::size_t count = claim.seats.size();
  std::array<std::uint64_t, most_in_flight> values{};
  std::array<std::optional<Result<Measurement>>, most_in_flight> outcomes;
  for (std::size_t i = 0; i < count; ++i) {
    Slot& slot = *static_cast<Slot*>(claim.seats[i]);
    values[i] = slot.value;
    outcomes[i].emplace(outcome_of(slot));
    slot.release();
  }
  Wake wake;
  {
    const std::lock_guard lock(mutex_);
    ring_.pass_on(claim, finished);
    if (adaptive_) ring_.set_depth(depth_.depth());
    while (!finished.empty()) wake = ring_.release(*finished.pop_front());
    in_flight_.fetch_sub(static_cast<std::uint32_t>(count), std::memory_order_relaxed);
    for (std::size_t i = 0; i < count; ++i) timeline_.finish(values[i], std::move(*outcomes[i]));
  }
  timeline_.announce();
  return wake;
}

// Finishes a slot that has left the lanes early.
void SlotPipeline::finish(Slot& slot) {
  const std::uint64_t value = slot.value;
  if (slot.cancelled) slot.failure = executor_cancelled(value);
  Result<Measurement> outcome = outcome_of(slot);
  slot.release();
  {
    const std::lock_guard lock(mutex_);
    ring_.release(slot);
  }
  in_flight_.fetch_sub(1, std::memory_order_relaxed);
  timeline_.finish(value, std::move(outcome));
  timeline_.announce();
}

Status SlotPipeline::executor_cancelled(std::uint64_t value) const {
  return cancelled("fence " + std::to_string(value) + ": cancelled before it reached the device");
}

Status SlotPipeline::cancel(std::uint64_t value, Wake& wake) {
  Seat* removed = nullptr;
  Ring::Cancelled how = Ring::Cancelled::absent;
  {
    const std::lock_guard lock(mutex_);
    how = ring_.cancel(value, removed);
  }
  switch (how) {
    case Ring::Cancelled::removed:
      finish(*static_cast<Slot*>(removed));
      wake.submitter = true;
      return {};
    case Ring::Cancelled::marked:
      return {};
    case Ring::Cancelled::too_late:
      return unavailable("fence " + std::to_string(value) + " of " + name_ +
                         " cannot be cancelled: the work is already on the device");
    default:
      break;
  }
  if (timeline_.state(value) == Timeline::State::gone) return timeline_.gone(value);
  return not_found("fence " + std::to_string(value) + " of " + name_ +
                   " cannot be cancelled: the work has already finished");
}

void SlotPipeline::refuse(Status why) {
  const std::lock_guard lock(mutex_);
  if (refusal_.ok()) refusal_ = std::move(why);
}

std::uint64_t SlotPipeline::backlog_ns() const noexcept {
  return in_flight_.load(std::memory_order_relaxed) * run_average_.ns();
}

std::shared_ptr<Device> SlotPipeline::device() const {
  const std::lock_guard lock(mutex_);
  return device_;
}

bool SlotPipeline::serves(const std::shared_ptr<Device>& device) const {
  const std::lock_guard lock(mutex_);
  if (device_ != nullptr) return device_ == device;
  // A lost device that its owner still holds, but not another device that was created at the same address.
  return !identity_.expired() && !identity_.owner_before(device) && !device.owner_before(identity_);
}

bool SlotPipeline::serves(const Device& device) const {
  const std::lock_guard lock(mutex_);
  return device_.get() == &device;
}

bool SlotPipeline::sweep() {
  const std::unique_lock lock(constants_mutex_, std::try_to_lock);
  if (!lock) return true;  // the Constants of a job are being made
  if (!constants_) return false;
  constants_->sweep();
  return !constants_->empty();
}

void SlotPipeline::let_go() {
  for (const auto& slot : slots_) slot->drop_buffers();
  {
    const std::lock_guard lock(constants_mutex_);
    constants_.reset();
  }
  std::shared_ptr<Device> device;
  const std::lock_guard lock(mutex_);
  device.swap(device_);
}

void SlotPipeline::abandon() {
  const std::lock_guard lock(mutex_);
  abandoned_.store(true, std::memory_order_release);
}

void SlotPipeline::park_if_abandoned() const {
  if (!abandoned_.load(std::memory_order_acquire)) return;
  std::unique_lock lock(mutex_);
  never_.wait(lock, [] { return false; });
}

// The work of the lanes.
namespace {

constexpr std::chrono::milliseconds slice{5};  // of a wait that must notice abandon()

void follow(std::atomic<std::uint64_t>& usual_ns, std::uint64_t ns) noexcept {
  const std::uint64_t old = usual_ns.load(std::memory_order_relaxed);
  const double before = static_cast<double>(old == UINT64_MAX ? ns : old);
  usual_ns.store(static_cast<std::uint64_t>(before + 0.2 * (static_cast<double>(ns) - before)),
                 std::memory_order_relaxed);
}

constexpr std::uint64_t between(std::uint64_t begin, std::uint64_t end) noexcept {
  return end > begin ? end - begin : 0;
}

Slot& slot_at(const Claim& claim, std::size_t i) noexcept { return *static_cast<Slot*>(claim.seats[i]); }

}  // namespace

void SlotPipeline::fail(Slot& slot, Status why) {
  if (why.code == StatusCode::device_lost) lose(why);
  slot.failure = std::move(why);
  slot.over = true;
}

void SlotPipeline::lose(const Status& cause) {
  const std::lock_guard lock(mutex_);
  if (!lost_.ok()) return;
  lost_ = device_lost(cause.message);
  refusal_ = device_lost(name_ + ": the device is lost: " + cause.message);
  is_lost_.store(true, std::memory_order_release);
}

void SlotPipeline::upload(Claim& claim) {
  for (std::size_t i = 0; i < claim.seats.size(); ++i) {
    Slot& slot = slot_at(claim, i);
    if (lost()) {
      fail(slot, device_lost("the device was lost"));
      continue;
    }
    try {
      const std::lock_guard lock(constants_mutex_);
      Status status = slot.prepare(*device_, *constants_, [this](const Dispatch& dispatch) {
        const auto result = run_to_end(dispatch);
        return result ? Status{} : result.error();
      });
      if (!status.ok()) fail(slot, std::move(status));
    } catch (const std::exception& error) {
      fail(slot, unavailable(std::string("the job could not be started: ") + error.what()));
    }
    park_if_abandoned();
    if (!slot.failure.ok()) continue;
    const std::uint64_t bytes = slot.work().upload_bytes(*device_);
    if (bytes != 0) upload_.learn(bytes, between(slot.at.built, slot.at.uploaded));
  }
}

Status SlotPipeline::submit_alone(Slot& slot) {
  slot.at.submitting = device_->clock_ns();
  std::span<const PassLaunch> launches = slot.launches();
  const std::span<const std::size_t> groups = slot.work().groups();
  for (std::size_t i = 0; i + 1 < groups.size(); ++i) {
    const std::uint64_t begin = device_->clock_ns();
    auto result = run_to_end({launches.first(groups[i])});
    if (!result) return result.error();
    if (result->device_ns == 0) *result = {between(begin, device_->clock_ns()), begin, std::move(result->chain)};
    slot.work().took(std::move(*result));
    launches = launches.subspan(groups[i]);
  }
  if (!groups.empty()) slot.at.submitting = device_->clock_ns();
  const auto value = device_->submit({launches});
  slot.at.submitted = device_->clock_ns();
  if (!value) return value.error();
  slot.device_value = *value;
  return {};
}

void SlotPipeline::dispatch(Claim& claim) {
  const std::size_t count = claim.seats.size();
  try {
    if (count > 1 && !lost()) {
      batch_.clear();
      for (std::size_t i = 0; i < count; ++i) {
        const auto launches = slot_at(claim, i).launches();
        batch_.insert(batch_.end(), launches.begin(), launches.end());
      }
      const std::uint64_t submitting = device_->clock_ns();
      const auto value = device_->submit({batch_});
      const std::uint64_t submitted = device_->clock_ns();
      park_if_abandoned();
      if (value) {
        for (std::size_t i = 0; i < count; ++i) {
          Slot& slot = slot_at(claim, i);
          slot.at.submitting = submitting;
          slot.at.submitted = submitted;
          slot.device_value = *value;
          slot.batch = slot_at(claim, 0).value;
        }
        return;
      }
      // Nothing has run. Each job is submitted alone, to find those that the device refuses.
    }
    for (std::size_t i = 0; i < count; ++i) {
      Slot& slot = slot_at(claim, i);
      if (slot.over) continue;
      Status status = lost() ? device_lost("the device was lost") : submit_alone(slot);
      park_if_abandoned();
      if (!status.ok()) fail(slot, std::move(status));
    }
  } catch (const std::exception& error) {
    for (std::size_t i = 0; i < count; ++i) {
      Slot& slot = slot_at(claim, i);
      if (slot.device_value == 0 && !slot.over) fail(slot, unavailable(std::string("not dispatched: ") + error.what()));
    }
  }
}

Result<FenceResult> SlotPipeline::run_to_end(const Dispatch& dispatch) {
  const auto value = device_->submit(dispatch);
  if (!value) return value.error();
  for (;;) {
    auto result = device_->wait(*value, Deadline::after(slice));
    park_if_abandoned();
    if (result || result.error().code != StatusCode::timeout) return result;
  }
}

// Repeats a job of a shared submission that failed. Its inputs are unchanged (Work::may_share).
void SlotPipeline::run_alone(Slot& slot) {
  Status status = slot.upload_again(*device_);
  if (!status.ok()) return fail(slot, std::move(status));
  slot.at.submitting = slot.at.submitted = device_->clock_ns();
  const auto result = run_to_end({slot.launches()});
  if (!result) return fail(slot, result.error());
  slot.at.finished = device_->clock_ns();
  slot.at.device_begun = result->begun_ns;
  slot.device_ns = result->device_ns;
}

bool SlotPipeline::retire(Claim& claim, Deadline patience) {
  const std::size_t count = claim.seats.size();
  Slot& first = slot_at(claim, 0);
  std::optional<Result<FenceResult>> result;
  if (!first.over && first.device_value != 0 && !lost()) {
    result.emplace(device_->wait(first.device_value, patience));
    park_if_abandoned();
    if (!*result && result->error().code == StatusCode::timeout) return false;
  }
  const std::uint64_t now = device_->clock_ns();
  const std::uint64_t since = finished_at(now);
  for (std::size_t i = 0; i < count; ++i) {
    Slot& slot = slot_at(claim, i);
    if (slot.over) continue;
    if (!result) {
      fail(slot, device_lost("the device was lost"));
    } else if (*result) {
      follow(submit_ns_, between(slot.at.submitting, slot.at.submitted));
      slot.at.finished = now;
      slot.at.free = since;
      slot.at.device_begun = (*result)->begun_ns;
      slot.device_ns = (*result)->device_ns;
      slot.chain = std::move((*result)->chain);
      slot.jobs_in_batch = static_cast<std::uint32_t>(count);
    } else if (count > 1 && result->error().code != StatusCode::device_lost) {
      run_alone(slot);
    } else {
      fail(slot, result->error());
    }
    if (!slot.over) read_back(slot, slot.jobs_in_batch);
  }
  return true;
}

std::uint64_t SlotPipeline::finished_at(std::uint64_t now) {
  const std::lock_guard lock(mutex_);
  return std::exchange(last_finished_ns_, std::max(last_finished_ns_, now));
}

void SlotPipeline::read_back(Slot& slot, std::uint32_t jobs) {
  if (Status status = slot.readback(*device_); !status.ok()) return fail(slot, std::move(status));
  const std::uint64_t bytes = slot.work().readback_bytes(*device_);
  if (bytes != 0) readback_.learn(bytes, between(slot.at.reading, slot.at.done));
  const std::uint64_t busy = between(std::max(slot.at.submitting, slot.at.free), slot.at.finished);
  const std::uint64_t device_ns = slot.device_ns != 0 ? slot.device_ns : busy;
  if (!slot.work().groups().empty()) {  // not a usual run
    const std::uint64_t begun = slot.device_ns != 0 ? slot.at.device_begun : slot.at.submitting;
    return slot.work().took({device_ns, begun, std::move(slot.chain)});
  }
  follow(device_ns_, device_ns / jobs);
  if (adaptive_) {
    const std::lock_guard lock(mutex_);
    depth_.add({static_cast<double>(between(slot.at.begun, slot.at.uploaded)), static_cast<double>(device_ns) / jobs,
                static_cast<double>(between(slot.at.reading, slot.at.done))});
  }
}

Result<Measurement> SlotPipeline::outcome_of(Slot& slot) {
  if (lost() && slot.over && slot.failure.code == StatusCode::device_lost) {
    const std::lock_guard lock(mutex_);
    slot.failure = lost_;
  }
  learn(slot);
  if (!slot.failure.ok()) {
    const bool named = slot.failure.message.starts_with(device_id_ + ":");  // by the device itself
    return named ? slot.failure : slot.failure.within(name_);
  }
  return slot.measured();
}

void SlotPipeline::learn(const Slot& slot) {
  const bool good = slot.failure.ok();
  const bool counts = slot.packed != 0 && counters_ != nullptr;
  const std::lock_guard lock(mutex_);
  if (!slot.cancelled && slot.at.done != 0) {
    run_average_.add(slot.at.begun, slot.at.done, good ? RunAverage::Outcome::finished : RunAverage::Outcome::failed);
  }
  if (!counts && trace_ == nullptr) return;
  // Both may be destroyed after abandon().
  if (abandoned_.load(std::memory_order_relaxed)) return;
  if (counts) counters_->prepared.fetch_add(slot.packed, std::memory_order_relaxed);
  if (trace_ != nullptr) slot.tell(*trace_, device_id_);
}

}  // namespace kiln::executor
