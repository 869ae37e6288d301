// Slot: one of the bounded places in flight on a queue: a job with its device buffers, and the stages it goes through.
//
// Stages, in this order: make_constants → upload → dispatch → (the device works) → readback → release.
// Thread-safety: none; a slot is handed from the submitting caller to the submit thread and back under the queue's
// lock. Ownership: from accept() to release() the slot pins the job's programs and keeps its tensors; between jobs it
// keeps the buffers for the next one.
#pragma once

#include "executor/buffer_pool.hpp"
#include "executor/constant_store.hpp"

#include <kiln/executor.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace kiln::executor {

class Slot {
 public:
  // Runs a dispatch to its end before it answers.
  using RunToEnd = std::function<Status(const Dispatch&)>;

  // REQUIRES: check(submission).ok(), and the slot is released.
  void accept(Submission submission, std::uint64_t value, std::uint64_t entered_ns);

  // Makes the job's Constants resident and, by `run`, those packed forms that are not there yet.
  Status make_constants(Device& device, ConstantStore& constants, const RunToEnd& run);
  Status upload(Device& device);
  // Hands all passes to the device as one Dispatch.
  Status dispatch(Device& device);
  Status readback();
  // The measurement of a job whose outputs lie in host memory now.
  Measurement measured(const FenceResult& device) const;
  // REQUIRES: the device has finished with the job, or is lost.
  void release() noexcept;
  void drop_buffers() noexcept;

  std::uint64_t value() const noexcept { return value_; }
  // The device's own value of the dispatch; 0: nothing was dispatched.
  std::uint64_t device_value() const noexcept { return device_value_; }
  std::uint64_t started_ns() const noexcept { return started_ns_; }
  std::uint64_t packed() const noexcept { return packed_; }  // Constants packed for this job

  // Why the job ended early; ok as long as it goes on.
  Status failure;

 private:
  struct Bound {
    Buffer* buffer = nullptr;
    std::unique_ptr<Buffer> wrapper;  // where the device works in the tensor's own memory
  };

  Buffer* buffer_of(const Binding& binding) const noexcept;
  Status bind(Device& device, std::size_t tensor);
  Status pack(Device& device, ConstantStore& constants, std::size_t index, const RunToEnd& run);

  Submission submission_;
  std::uint64_t value_ = 0;
  std::uint64_t device_value_ = 0;
  std::uint64_t entered_ns_ = 0;
  std::uint64_t started_ns_ = 0;
  std::uint64_t packed_ = 0;
  std::uint64_t beside_clock_ns_ = 0;  // bringing a poison to the device: part of verification, not of the job
  Measurement measurement_;

  BufferPool pool_;
  std::vector<Bound> tensors_;
  std::vector<Buffer*> scratch_;
  std::vector<Buffer*> prepared_;
  std::vector<Buffer*> bindings_;  // of all passes, one after the other
  std::vector<PassLaunch> launches_;
};

}  // namespace kiln::executor
