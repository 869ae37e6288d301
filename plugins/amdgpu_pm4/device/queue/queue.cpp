#include "amdgpu_pm4/device/queue/queue.hpp"

#include <algorithm>
#include <bit>

namespace kiln::amdgpu_pm4 {
namespace {

// Of a sleep in the kernel, after which a reset is looked for: a device that hangs may never pass the point.
constexpr std::chrono::milliseconds slice{250};
constexpr std::chrono::seconds patience_at_the_end{10};

}  // namespace

Queue::Queue(Winsys& winsys, Quarantine& quarantine, QueueSettings settings)
    : winsys_(winsys),
      quarantine_(quarantine),
      settings_(std::move(settings)),
      clock_(winsys),
      stream_(settings_.shape, *this) {}

Result<std::unique_ptr<Queue>> Queue::create(Winsys& winsys, Quarantine& quarantine, QueueSettings settings) {
  std::unique_ptr<Queue> queue(new Queue(winsys, quarantine, std::move(settings)));
  if (Status status = queue->open(); !status.ok()) return status;
  return queue;
}

Status Queue::open() {
  ring_ = static_cast<std::uint32_t>(std::countr_zero(winsys_.facts().compute.rings));
  auto timeline = winsys_.create_timeline();
  if (!timeline) return timeline.error();
  timeline_ = std::move(timeline).value();
  if (Status status = replace_context(); !status.ok()) return status;
  auto commands = RingBuffer::create(winsys_, BufferUse::commands, settings_.commands_bytes);
  if (!commands) return commands.error();
  commands_ = std::move(commands).value();
  auto arguments = RingBuffer::create(winsys_, BufferUse::arguments, settings_.arguments_bytes);
  if (!arguments) return arguments.error();
  arguments_ = std::move(arguments).value();
  auto reports = RingBuffer::create(winsys_, BufferUse::reports, settings_.reports_bytes);
  if (!reports) return reports.error();
  reports_ = std::move(reports).value();
  return {};
}

Queue::~Queue() {
  const std::lock_guard lock(mutex_);
  const Deadline deadline = Deadline::after(patience_at_the_end);
  // What never ends keeps its memory until the kernel driver has given it up.
  if (!in_flight_.empty()) (void)timeline_->wait(in_flight_.back().value, deadline);
}

Status Queue::alive() const {
  const std::lock_guard lock(mutex_);
  return lost_;
}

Result<std::uint64_t> Queue::submit(const std::vector<BoundPass>& passes) {
  const std::lock_guard lock(mutex_);
  if (!lost_.ok()) return lost_;
  collect_passed();
  for (const BoundPass& pass : passes) {
    Status refused = quarantine_.check(pass.kernel->digest, pass.kernel->name());
    if (!refused.ok()) return std::move(refused).within(settings_.device);
  }
  Status status;
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (!lost_.ok()) return lost_;
    const std::uint64_t value = results_.next();
    status = try_submit(passes);
    if (status.ok()) {
      results_.begin();
      return value;
    }
    for (RingBuffer* ring : {commands_.get(), arguments_.get(), reports_.get()}) ring->space().give_back(value);
    if (status.code == StatusCode::device_lost) {
      lose(status.message);
    } else if (status.code == StatusCode::cancelled) {
      recover();
    } else if (status.code == StatusCode::unavailable && !in_flight_.empty()) {
      while (!in_flight_.empty() && wait_for_oldest().ok()) {  // memory may come free
      }
    } else {
      break;
    }
  }
  if (status.code == StatusCode::cancelled) status.code = StatusCode::unavailable;
  return lost_.ok() ? status.within(settings_.device) : lost_;
}

Result<FenceResult> Queue::wait(std::uint64_t value, Deadline deadline) {
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (auto result = results_.take(value, oldest())) return std::move(*result);
    }
    const Deadline until = deadline.left() < slice ? deadline : Deadline::after(slice);
    const Status waited = timeline_->wait(value, until);
    const std::lock_guard lock(mutex_);
    if (waited.code == StatusCode::device_lost) lose(waited.message);
    if (waited.ok()) {
      while (oldest() <= value && !in_flight_.empty()) resolve_oldest();
    } else {
      look_for_reset();
    }
    if (auto result = results_.take(value, oldest())) return std::move(*result);
    if (deadline.passed()) {
      return timed_out("submission " + std::to_string(value) +
                       ": not finished by its deadline; it may still be running");
    }
    if (!waited.ok() && waited.code != StatusCode::timeout) return waited.within(settings_.device);
  }
}

}  // namespace kiln::amdgpu_pm4
