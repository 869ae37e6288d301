#include "executor/ring_executor.hpp"

#include "executor/submission_check.hpp"

#include <exception>
#include <string>

namespace kiln {
namespace {

constexpr std::uint32_t most_in_flight = 16;

}  // namespace

Result<std::unique_ptr<Executor>> RingExecutor::create(const ExecutorContext& context) {
  const std::uint32_t in_flight = context.config.in_flight;
  if (in_flight < 1 || in_flight > most_in_flight) {
    return invalid_argument("[executor] in_flight = " + std::to_string(in_flight) + ": expected 1 to " +
                            std::to_string(most_in_flight));
  }
  return std::unique_ptr<Executor>(new RingExecutor(context));
}

RingExecutor::~RingExecutor() {
  const Deadline deadline = Deadline::after(context_.config.timeout);
  for (const auto& queue : queues_) queue->request_stop();
  for (const auto& queue : queues_) {
    if (queue->stop(deadline)) continue;
    context_.log.write(LogLevel::warning, "executor",
                       queue->name() + ": work is still running at the end of the timeout; its memory is left to it");
  }
}

Result<RingExecutor::Found> RingExecutor::queue_of(const std::shared_ptr<Device>& device) {
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < queues_.size(); ++i) {
    if (queues_[i]->serves(device)) return Found{static_cast<std::uint32_t>(i + 1), queues_[i].get()};
  }
  auto started = executor::RingQueue::start(device, context_);
  if (!started) return std::move(started).error();
  queues_.push_back(std::move(started).value());
  return Found{static_cast<std::uint32_t>(queues_.size()), queues_.back().get()};
}

Result<Fence> RingExecutor::submit(Submission submission) noexcept {
  const std::uint64_t entered_ns = now_ns();
  try {
    if (Status status = executor::check(submission); !status.ok()) return status;
    const auto found = queue_of(submission.device);
    if (!found) return found.error();
    const auto value = found->queue->submit(std::move(submission), entered_ns);
    if (!value) return value.error();
    return Fence{found->number, *value};
  } catch (const std::exception& error) {
    return unavailable(std::string("submission: ") + error.what());
  }
}

Result<Measurement> RingExecutor::wait(Fence fence, Deadline deadline) noexcept {
  executor::RingQueue* queue = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (fence.queue >= 1 && fence.queue <= queues_.size()) queue = queues_[fence.queue - 1].get();
  }
  if (queue == nullptr) return not_found("fence of queue " + std::to_string(fence.queue) + ": there is no such queue");
  return queue->wait(fence.value, deadline);
}

std::uint64_t RingExecutor::backlog_ns(const Device& device) const noexcept {
  const std::lock_guard lock(mutex_);
  for (const auto& queue : queues_) {
    if (queue->serves(device)) return queue->backlog_ns();
  }
  return 0;
}

Status register_ring_executor(Registry& registry) {
  return registry.add_executor("core", "ring", RingExecutor::create);
}

}  // namespace kiln
