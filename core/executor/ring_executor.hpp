// RingExecutor ("ring"): a bounded ring of slots and a submit thread for each device.
//
// Thread-safety: every method from any thread. Ownership: owns one queue per device, created at the device's first job
// and destroyed, with its results, by the destructor. The destructor waits for jobs in flight up to [executor] timeout;
// jobs that still run are abandoned with their device (ring_queue.hpp): their memory is leaked, not freed.
#pragma once

#include "executor/ring_queue.hpp"

#include <kiln/executor.hpp>
#include <kiln/registry.hpp>

#include <memory>
#include <shared_mutex>
#include <vector>

namespace kiln {

class RingExecutor final : public Executor {
 public:
  // invalid_argument: in_flight is not 1 to 16.
  static Result<std::unique_ptr<Executor>> create(const ExecutorContext& context);
  ~RingExecutor() override;

  Result<Fence> submit(Submission submission) noexcept override;
  Result<Measurement> wait(Fence fence, Deadline deadline) noexcept override;
  std::uint64_t backlog_ns(const Device& device) const noexcept override;
  Status cancel(Fence fence) noexcept override;
  Result<std::size_t> wait_any(std::span<const Fence> fences, Deadline deadline) noexcept override;
  Result<std::shared_ptr<Recording>> record(std::vector<Submission> submissions) noexcept override;
  Result<Fence> replay(const std::shared_ptr<Recording>& recording, Deadline deadline) noexcept override;

 private:
  explicit RingExecutor(const ExecutorContext& context)
      : context_(context), bell_(std::make_shared<executor::CompletionBell>()) {}

  struct Found {
    std::uint32_t number;
    executor::RingQueue* queue;
  };
  Result<Found> queue_of(const std::shared_ptr<Device>& device);
  executor::RingQueue* queue_of(Fence fence) const;

  const ExecutorContext context_;
  const std::shared_ptr<executor::CompletionBell> bell_;
  mutable std::shared_mutex mutex_;
  std::vector<std::shared_ptr<executor::RingQueue>> queues_;  // queue n is at index n - 1
  std::vector<std::weak_ptr<executor::RecordedWork>> recordings_;
};

// Registers "ring" as part of "core".
Status register_ring_executor(Registry& registry);

}  // namespace kiln
