// RingExecutor ("ring"): a bounded ring of slots and a submit thread for each device.
//
// Thread-safety: every method from any thread. Ownership: owns a queue a device, made at the device's first job and
// kept, with its results, until the executor dies. The destructor waits for what is in flight within [executor]
// timeout; what still runs then is abandoned as ring_queue.hpp says: leaked, with its device, rather than freed under
// it.
#pragma once

#include "executor/ring_queue.hpp"

#include <kiln/executor.hpp>
#include <kiln/registry.hpp>

#include <memory>
#include <mutex>
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

 private:
  explicit RingExecutor(const ExecutorContext& context) : context_(context) {}

  struct Found {
    std::uint32_t number;
    executor::RingQueue* queue;
  };
  Result<Found> queue_of(const std::shared_ptr<Device>& device);

  const ExecutorContext context_;
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<executor::RingQueue>> queues_;  // number n lies at n - 1
};

// Registers "ring" in the name of "core".
Status register_ring_executor(Registry& registry);

}  // namespace kiln
