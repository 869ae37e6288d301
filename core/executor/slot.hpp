// Slot: a seat of the ring with its job and the time stamps of its stages.
//
// Thread-safety: none; a slot passes from the submitting caller through the lanes and back, under the lock of its
// pipeline. Ownership: holds the job's work from accept() to release(), and its buffers also between jobs.
#pragma once

#include "executor/ring.hpp"
#include "executor/work.hpp"

#include <kiln/trace.hpp>

namespace kiln::executor {

// In the device's clock. device_begun: 0 if the device does not report it.
struct Stamps {
  std::uint64_t entered = 0;   // time of the request
  std::uint64_t accepted = 0;  // a slot was assigned
  std::uint64_t begun = 0;     // the upload lane took it
  std::uint64_t built = 0, uploaded = 0;
  std::uint64_t submitting = 0, submitted = 0;
  std::uint64_t device_begun = 0, finished = 0;
  std::uint64_t free = 0;  // the device had finished the job before
  std::uint64_t reading = 0, done = 0;
};

class Slot final : public Seat {
 public:
  explicit Slot(std::uint32_t number) : number_(number) {}

  // REQUIRES: check(submission).ok(), and the slot is released.
  void accept(Submission submission);
  void accept(std::shared_ptr<RecordedWork> recording);

  // The stages; each records its begin and end.
  Status prepare(Device& device, ConstantStore& constants, const RunToEnd& run);  // constants and upload
  Status upload_again(Device& device);
  std::span<const PassLaunch> launches() { return work_->launches(); }
  Status readback(Device& device);

  // REQUIRES: the outputs of the job are in host memory.
  Measurement measured() const;
  void tell(TraceSink& trace, std::string_view device) const;
  // REQUIRES: the device has finished with the job, or is lost.
  void release() noexcept;
  void drop_buffers() noexcept { own_work_.drop_buffers(); }

  std::uint32_t number() const noexcept { return number_; }
  Work& work() const noexcept { return *work_; }

  Status failure;  // why the job ended early; ok otherwise
  Stamps at;
  std::uint64_t device_value = 0;  // the device's own value of the dispatch; 0: nothing was dispatched
  std::uint64_t device_ns = 0;
  ChainFigures chain;
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
