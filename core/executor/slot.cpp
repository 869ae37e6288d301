#include "executor/slot.hpp"

#include <algorithm>
#include <array>
#include <span>

namespace kiln::executor {
namespace {

constexpr std::uint64_t from(std::uint64_t begin, std::uint64_t end) noexcept { return end > begin ? end - begin : 0; }

}  // namespace

void Slot::accept(Submission submission) {
  ordered = submission.completion != Completion::unordered;
  own_work_.accept(std::move(submission));
  work_ = &own_work_;
}

void Slot::accept(std::shared_ptr<RecordedWork> recording) {
  recording_ = std::move(recording);
  work_ = recording_.get();
}

Status Slot::prepare(Device& device, ConstantStore& constants, const RunToEnd& run) {
  at.begun = device.clock_ns();
  if (Status status = work_->make_constants(device, constants, run, packed); !status.ok()) return status;
  at.built = device.clock_ns();
  Status status = work_->upload(device, aside_ns_);
  at.uploaded = device.clock_ns();
  return status;
}

Status Slot::upload_again(Device& device) {
  std::uint64_t ignored = 0;
  return work_->upload(device, ignored);
}

Status Slot::readback(Device& device) {
  at.reading = device.clock_ns();
  Status status = work_->readback();
  at.done = device.clock_ns();
  return status;
}

Measurement Slot::measured() const {
  Measurement m;
  m.queue_ns = from(at.entered, at.begun) + from(at.uploaded, at.submitting);
  // A device works on one job after another. Its own time stays in the run, however late the job before was retired.
  std::uint64_t begun = at.device_begun;
  if (begun == 0 && device_ns != 0) begun = from(device_ns, at.finished);
  m.queue_ns += from(at.submitting, std::min({at.free, begun, at.finished}));
  m.build_ns = from(at.begun, at.built);
  m.upload_ns = from(at.built + aside_ns_, at.uploaded);
  m.device_ns = device_ns;
  m.readback_ns = from(at.reading, at.done);
  m.wall_ns = from(at.entered + aside_ns_, at.done);
  m.prepared = packed != 0;
  m.batch = jobs_in_batch;
  m.variant = work_->variant();
  return m;
}

void Slot::tell(TraceSink& trace, std::string_view device) const {
  std::array<StageSpan, 7> stages;
  std::size_t count = 0;
  const auto add = [&](Stage stage, std::uint64_t begin, std::uint64_t end) {
    if (begin == 0 || end < begin) return;
    stages[count++] = {device, work_->variant(), number_, value, stage, begin, end};
  };
  // Device time stamps are limited to the interval that the host measured, so spans of one lane never overlap.
  const std::uint64_t told = at.device_begun != 0 ? at.device_begun : at.submitted;
  const std::uint64_t begun = std::clamp(told, at.submitting, std::max(at.submitting, at.finished));
  const std::uint64_t ended =
      device_ns != 0 && at.device_begun != 0 ? std::min(begun + device_ns, at.finished) : at.finished;
  const std::uint64_t last =
      std::max({at.done, at.finished, at.submitted, at.uploaded, at.built, at.begun, at.accepted});
  add(Stage::job, at.accepted, last);
  add(Stage::queue, at.accepted, at.begun);
  add(Stage::build, at.begun, at.built);
  add(Stage::upload, at.built, at.uploaded);
  // A device that works inside the call ends before the call returns.
  add(Stage::submit, at.submitting, std::min(at.submitted, begun));
  if (at.finished != 0) add(Stage::device, begun, ended);
  add(Stage::readback, at.reading, at.done);
  trace.add_job(std::span(stages.data(), count));
}

void Slot::release() noexcept {
  if (work_ != nullptr) work_->release();
  work_ = nullptr;
  recording_.reset();
  failure = {};
  at = {};
  device_value = device_ns = packed = aside_ns_ = 0;
  chain = {};
  jobs_in_batch = 1;
  upload_apart = false;
}

}  // namespace kiln::executor
