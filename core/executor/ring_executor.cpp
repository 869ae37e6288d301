#include "executor/ring_executor.hpp"

#include "executor/work.hpp"

#include <algorithm>
#include <exception>
#include <mutex>
#include <new>
#include <string>

namespace kiln {

using executor::RecordedWork;
using executor::RingQueue;
using executor::Timeline;

Result<std::unique_ptr<Executor>> RingExecutor::create(const ExecutorContext& context) {
  const std::uint32_t in_flight = context.config.in_flight;
  if (in_flight < 1 || in_flight > executor::most_in_flight) {
    return invalid_argument("[executor] in_flight = " + std::to_string(in_flight) + ": expected 1 to " +
                            std::to_string(executor::most_in_flight));
  }
  return std::unique_ptr<Executor>(new RingExecutor(context));
}

RingExecutor::~RingExecutor() {
  // Work that ends meanwhile is not abandoned: its thread would use objects that are destroyed next.
  constexpr std::chrono::milliseconds least_patience{500};
  const Deadline deadline =
      Deadline::after(std::max<std::chrono::nanoseconds>(context_.config.timeout, least_patience));
  for (const auto& queue : queues_) queue->request_stop();
  for (const auto& queue : queues_) {
    if (queue->stop(deadline)) continue;
    try {
      context_.log.write(LogLevel::warning, "executor",
                         queue->name() + ": work is still running after the timeout, so its memory is not freed");
    } catch (const std::bad_alloc&) {  // the warning is lost
    }
  }
}

Result<RingExecutor::Found> RingExecutor::queue_of(const std::shared_ptr<Device>& device) {
  const auto find = [&]() -> std::optional<Found> {
    for (std::size_t i = 0; i < queues_.size(); ++i) {
      if (queues_[i]->serves(device)) return Found{static_cast<std::uint32_t>(i + 1), queues_[i].get()};
    }
    return std::nullopt;
  };
  {
    const std::shared_lock lock(mutex_);
    if (const auto found = find()) return *found;
  }
  const std::lock_guard lock(mutex_);
  if (const auto found = find()) return *found;
  auto started = RingQueue::start(device, context_, bell_);
  if (!started) return std::move(started).error();
  queues_.push_back(std::move(started).value());
  return Found{static_cast<std::uint32_t>(queues_.size()), queues_.back().get()};
}

RingQueue* RingExecutor::queue_of(Fence fence) const {
  const std::shared_lock lock(mutex_);
  return fence.queue >= 1 && fence.queue <= queues_.size() ? queues_[fence.queue - 1].get() : nullptr;
}

namespace {

Status no_such_queue(Fence fence) {
  return not_found("fence of queue " + std::to_string(fence.queue) + ": this queue does not exist");
}

}  // namespace

Result<Fence> RingExecutor::submit(Submission submission) noexcept {
  try {
    if (submission.device == nullptr) return invalid_argument("submission has no device");
    const std::uint64_t entered_ns = submission.device->clock_ns();
    if (Status status = executor::check(submission, executor::Use::submit); !status.ok()) return status;
    const auto found = queue_of(submission.device);
    if (!found) return found.error();
    const Deadline deadline = submission.deadline;
    const bool waits_next = submission.waits_next;
    const auto value = found->queue->submit(std::move(submission), deadline, entered_ns, waits_next);
    if (!value) return value.error();
    return Fence{found->number, *value};
  } catch (...) {
    return caught("submission");
  }
}

Result<Measurement> RingExecutor::wait(Fence fence, Deadline deadline) noexcept try {
  RingQueue* const queue = queue_of(fence);
  return queue != nullptr ? queue->wait(fence.value, deadline) : no_such_queue(fence);
} catch (...) {
  return caught("wait");
}

Status RingExecutor::cancel(Fence fence) noexcept try {
  RingQueue* const queue = queue_of(fence);
  return queue != nullptr ? queue->cancel(fence.value) : no_such_queue(fence);
} catch (...) {
  return caught("cancel");
}

Result<std::size_t> RingExecutor::wait_any(std::span<const Fence> fences, Deadline deadline) noexcept try {
  std::optional<std::size_t> found;
  bool hopeless = true;
  const auto look = [&] {
    hopeless = true;
    for (std::size_t i = 0; i < fences.size(); ++i) {
      RingQueue* const queue = queue_of(fences[i]);
      const Timeline::State state = queue != nullptr ? queue->state(fences[i].value) : Timeline::State::gone;
      if (state == Timeline::State::finished) {
        found = i;
        return true;
      }
      hopeless = hopeless && state == Timeline::State::gone;
    }
    return hopeless;
  };
  bell_->listen(deadline, look);
  if (found) return *found;
  const std::string none = "none of the " + std::to_string(fences.size()) + " fences ";
  if (hopeless) return not_found(none + "is in flight: their results were taken, or they were never submitted");
  return timed_out(none + "finished by the deadline of the wait; the work continues");
} catch (...) {
  return caught("wait");
}

Result<std::shared_ptr<Recording>> RingExecutor::record(std::vector<Submission> submissions) noexcept {
  try {
    if (submissions.empty()) return invalid_argument("recording: no submissions given, expected at least one");
    for (std::size_t i = 0; i < submissions.size(); ++i) {
      const std::string where = "recording: submission " + std::to_string(i);
      if (Status status = executor::check(submissions[i], executor::Use::record); !status.ok())
        return status.within(where);
      if (submissions[i].device == submissions[0].device) continue;
      return invalid_argument(where + " is for device " + submissions[i].device->info().id + ", expected device " +
                              submissions[0].device->info().id + " of submission 0");
    }
    auto made = RecordedWork::create(std::move(submissions));
    if (!made) return std::move(made).error().within("recording");
    const std::lock_guard lock(mutex_);
    std::erase_if(recordings_, [](const auto& recording) { return recording.expired(); });
    recordings_.push_back(*made);
    return std::shared_ptr<Recording>(std::move(made).value());
  } catch (...) {
    return caught("recording");
  }
}

Result<Fence> RingExecutor::replay(const std::shared_ptr<Recording>& recording, Deadline deadline) noexcept {
  try {
    if (recording == nullptr) return invalid_argument("replay: no recording given");
    std::shared_ptr<RecordedWork> work;
    {
      const std::shared_lock lock(mutex_);
      for (const auto& known : recordings_) {
        if ((work = known.lock()) == recording) break;
      }
    }
    if (work != recording) return invalid_argument("replay: the recording belongs to another executor");
    const std::uint64_t entered_ns = work->device()->clock_ns();
    const auto found = queue_of(work->device());
    if (!found) return found.error();
    if (!work->begin()) return invalid_argument("replay: the recording is still in flight. Wait for its fence first");
    const auto value = found->queue->submit(work, deadline, entered_ns);
    if (!value) {
      work->release();
      return value.error();
    }
    return Fence{found->number, *value};
  } catch (...) {
    return caught("replay");
  }
}

std::uint64_t RingExecutor::backlog_ns(const Device& device) const noexcept {
  const std::shared_lock lock(mutex_);
  for (const auto& queue : queues_) {
    if (queue->serves(device)) return queue->backlog_ns();
  }
  return 0;
}

Status register_ring_executor(Registry& registry) {
  return registry.add_executor("core", "ring", RingExecutor::create);
}

}  // namespace kiln
