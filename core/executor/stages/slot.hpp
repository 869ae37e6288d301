// Slot: one of the bounded places in flight on a queue: a seat of the ring with its job, and the stamps of its stages.
//
// Thread-safety: none; a slot is handed from the submitting caller to the lanes, one after the other, and back, under
// the lock of its pipeline. Ownership: from accept() to release() it keeps the job's work; between jobs it keeps the
// buffers for the next one.
#pragma once

#include "executor/ring/seat.hpp"
#include "executor/stages/recorded_work.hpp"
#include "executor/stages/submitted_work.hpp"

#include <kiln/trace.hpp>

namespace kiln::executor {

// By the device's clock. device_begun: 0 where the device does not tell.
struct Stamps {
  std::uint64_t entered = 0;   // the request
  std::uint64_t accepted = 0;  // it got its slot
  std::uint64_t begun = 0;     // its upload lane took it
  std::uint64_t built = 0, uploaded = 0;
  std::uint64_t submitting = 0, submitted = 0;
  std::uint64_t device_begun = 0, finished = 0;
  std::uint64_t reading = 0, done = 0;
};

class Slot final : public Seat {
 public:
  explicit Slot(std::uint32_t number) : number_(number) {}

  // REQUIRES: check(submission).ok(), and the slot is released.
  void accept(Submission submission);
  void accept(std::shared_ptr<RecordedWork> recording);

  // The stages; each stamps its begin and end.
  Status prepare(Device& device, ConstantStore& constants, const RunToEnd& run);  // constants and upload
  Status upload_again(Device& device);
  std::span<const PassLaunch> launches() { return work_->launches(); }
  Status readback(Device& device);

  // Of a job whose outputs lie in host memory now.
  Measurement measured() const;
  void tell(TraceSink& trace, std::string_view device) const;
  // REQUIRES: the device has finished with the job, or is lost.
  void release() noexcept;
  void drop_buffers() noexcept { own_work_.drop_buffers(); }

  std::uint32_t number() const noexcept { return number_; }
  Work& work() const noexcept { return *work_; }

  Status failure;  // why the job ended early; ok as long as it goes on
  Stamps at;
  std::uint64_t device_value = 0;  // the device's own value of the dispatch; 0: nothing was dispatched
  std::uint64_t device_ns = 0;
  std::uint64_t packed = 0;  // Constants packed for this job
  std::uint32_t jobs_in_batch = 1;
  bool upload_apart = false;  // as readback_apart

 private:
  const std::uint32_t number_;
  Work* work_ = nullptr;
  SubmittedWork own_work_;
  std::shared_ptr<RecordedWork> recording_;
  std::uint64_t aside_ns_ = 0;
};

}  // namespace kiln::executor
