#include "executor/slot_pipeline.hpp"

namespace kiln::executor {
namespace {

// Handing a job to another thread and back costs two wake-ups of some 10 to 50 us.
constexpr std::uint64_t worth_a_thread_ns = 40'000;
// Jobs that the device is done with so soon share a submission where several wait.
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

bool takes_long(std::uint64_t bytes, const UsualCopy& usual) noexcept {
  return bytes != 0 && usual.ns(bytes) >= worth_a_thread_ns;
}

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
  // The results appear after the slots are free and everything of the jobs has been let go, and before any that comes
  // back later: both lanes finish under the one lock.
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

// A slot that has left the lanes early.
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
                         ": it is on the device already and runs to its end");
    default:
      break;
  }
  if (timeline_.state(value) == Timeline::State::gone) return timeline_.gone(value);
  return not_found("fence " + std::to_string(value) + " of " + name_ + ": it is finished already");
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
  // A lost device that its owner still holds; never another one that has come to lie at the same address.
  return !identity_.expired() && !identity_.owner_before(device) && !device.owner_before(identity_);
}

bool SlotPipeline::serves(const Device& device) const {
  const std::lock_guard lock(mutex_);
  return device_.get() == &device;
}

bool SlotPipeline::sweep() {
  const std::unique_lock lock(constants_mutex_, std::try_to_lock);
  if (!lock) return true;  // a job's are being made just now
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

}  // namespace kiln::executor
