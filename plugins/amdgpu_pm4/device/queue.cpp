#include "amdgpu_pm4/device/queue.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <set>

#include "amdgpu_pm4/device/submission.hpp"

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
                       " did not finish before the deadline and may still be running");
    }
    if (!waited.ok() && waited.code != StatusCode::timeout) return waited.within(settings_.device);
  }
}

Result<UniqueFd> Queue::export_fence(std::uint64_t value) {
  const std::lock_guard lock(mutex_);
  if (!lost_.ok()) return lost_;
  if (value == 0 || value >= results_.next()) {
    return not_found(settings_.device + ": submission " + std::to_string(value) +
                     " does not exist, the last submission is " + std::to_string(results_.next() - 1));
  }
  auto fence = timeline_->export_sync_file(value);
  if (!fence) return std::move(fence).error().within(settings_.device);
  return fence;
}

Status Queue::wait_for_fence(int sync_file) {
  const std::lock_guard lock(mutex_);
  if (!lost_.ok()) return lost_;
  if (others_ == nullptr) {
    auto made = winsys_.create_timeline();
    if (!made) return std::move(made).error().within(settings_.device);
    others_ = std::move(made).value();
  }
  Status status = others_->import_sync_file(last_other_ + 1, sync_file);
  if (!status.ok()) return std::move(status).within(settings_.device);
  awaited_ = {others_->handle(), ++last_other_};  // a point is passed after those before it
  return {};
}

// What Queue does with submissions that ended, and with a device that was reset.

namespace {

// Between a point that is passed and the outcome that the kernel driver tells of the same work.
constexpr std::chrono::seconds outcome_patience{1};
constexpr std::chrono::seconds room_patience{60};    // the kernel driver gives up a compute job after as long
constexpr std::chrono::seconds cancel_patience{10};  // for what a reset cancels to be told so
constexpr std::uint64_t reset_interval_ns = 100'000'000;
constexpr std::uint64_t shortest_reset_ns = 200'000'000;
constexpr std::uint32_t runs_nothing_twice = 50;  // the interface's minor version of Linux 6.3; 6.2 has that of 6.1

}  // namespace

void Queue::collect_passed() {
  if (in_flight_.empty()) return;
  const auto passed = timeline_->passed();
  if (!passed) {
    if (passed.error().code == StatusCode::device_lost) lose(passed.error().message);
    return;
  }
  while (!in_flight_.empty() && in_flight_.front().value <= *passed) resolve_oldest();
}

void Queue::look_for_reset() {
  const std::uint64_t now = now_ns();
  if (in_flight_.empty() || now < reset_looked_for_ns_ + reset_interval_ns) return;
  reset_looked_for_ns_ = now;
  const auto state = context_->reset_state();
  if (!state || !state->reset || state->in_progress) return;
  while (!in_flight_.empty()) {
    const InFlight& work = in_flight_.front();
    if (work.context->outcome(work.number, ring_, {Clock::now()}).how.code == StatusCode::timeout) return;
    resolve_oldest();
  }
}

// After a reset that another program caused, Linux before 6.2 runs again what was in flight, from its start.
bool Queue::may_have_run_twice(const InFlight& work) const {
  if (winsys_.facts().interface_minor >= runs_nothing_twice) return false;
  if (now_ns() < work.handed_over_ns + shortest_reset_ns) return false;
  const auto state = work.context->reset_state();
  return state && state->reset && !state->guilty;
}

void Queue::resolve_oldest() {
  const InFlight work = std::move(in_flight_.front());
  in_flight_.pop_front();
  Outcome outcome = work.context->outcome(work.number, ring_, Deadline::after(outcome_patience));
  // The stamps are the device's own word for it: work that was thrown away may be told as done.
  if (outcome.how.ok() && work.stamps.last() == 0)
    outcome.how = internal_error("reported as complete, but the last pass has not ended");
  if (outcome.how.ok() && may_have_run_twice(work))
    outcome.how = cancelled("the device was reset after the context was created: the work may have run twice");
  if (outcome.how.ok()) {
    for (const auto& kernel : work.kernels) kernel->ended_well = true;
    const std::uint64_t begin = work.stamps.first();
    results_.finish(work.value, FenceResult{clock_.ns_between(begin, work.stamps.last()), clock_.on_host_clock(begin)});
  } else {
    fail(work, outcome);
  }
  for (RingBuffer* ring : {commands_.get(), arguments_.get(), reports_.get()}) ring->space().passed(work.value);
}

void Queue::fail(const InFlight& work, const Outcome& outcome) {
  const std::string what = settings_.device + ": submission " + std::to_string(work.value);
  if (!lost_.ok()) {
    results_.finish(work.value, lost_);
    return;
  }
  if (work.context != context_) {  // it was queued behind the one that hung
    results_.finish(work.value, unavailable(what + " was cancelled: " + last_reset_));
    return;
  }
  const auto state = context_->reset_state();
  const bool gone = outcome.how.code == StatusCode::device_lost;
  if (gone || !state || state->vram_lost) {
    const std::string why = !state ? state.error().message
                            : gone ? outcome.how.message
                                   : "device memory was lost in a reset";
    lose(state ? blame(work, outcome, *state) + "; " + why : why);
    results_.finish(work.value, lost_);
    return;
  }
  last_reset_ = blame(work, outcome, *state);
  settings_.log.write(LogLevel::warning, "amdgpu_pm4", what + ": " + last_reset_);
  results_.finish(work.value, unavailable(what + ": " + last_reset_));
  if (Status status = replace_context(); !status.ok()) lose("no new context after a reset: " + status.message);
}

// Says what happened, and puts who did it into quarantine where that is certain.
std::string Queue::blame(const InFlight& work, const Outcome& outcome, const ResetState& state) {
  const Status& how = outcome.how;
  const bool guilty = state.guilty || outcome.own_fault;
  if (state.reset && !guilty) return "another program's work caused a reset of the device (" + how.message + ")";
  InFlight::Passes passes = work.unfinished();
  // The kernel driver knows that this was it; what was written before the reset may be lost.
  if (passes.begin == passes.end && guilty) passes = work.longest();
  if (passes.begin == passes.end) return "the submission failed while no pass was running (" + how.message + ")";
  std::set<Digest> kernels;
  for (std::size_t i = passes.begin; i < passes.end; ++i) kernels.insert(work.kernel_of(i).quarantine_key);
  std::string where = "pass " + std::to_string(passes.begin);
  if (passes.end - passes.begin > 1) where += " to " + std::to_string(passes.end - 1);
  const std::string name = work.kernel_of(passes.begin).name();
  // A device that names a fault has stopped at it; one that names none, or its watchdog, has hung.
  const bool stopped =
      !state.fault.empty() && !state.fault.starts_with("watchdog") && !state.fault.starts_with("planted");
  const std::string did = stopped ? " was stopped by a fault" : " hung the device";
  const std::string why = " (" + (state.fault.empty() ? how.message : state.fault) + ")";
  if (kernels.size() == 1) {
    quarantine_.add(*kernels.begin());
    return where + ": " + name + did + " and is in quarantine" + why;
  }
  for (const Digest& kernel : kernels) quarantine_.suspect(kernel);
  return where + ": " + name + " or one of " + std::to_string(kernels.size() - 1) + " others" + did +
         "; each of these kernels runs alone from now on" + why;
}

Status Queue::replace_context() {
  auto context = winsys_.create_context(Priority::normal);
  if (!context) return context.error();
  context_ = std::move(context).value();
  // What waited for it in the context before may have been cancelled.
  if (last_other_ != 0) awaited_ = {others_->handle(), last_other_};
  return {};
}

// The kernel driver refuses the context: all that is in flight ends soon, one way or the other.
void Queue::recover() {
  const std::shared_ptr<Context> refused = context_;
  while (!in_flight_.empty()) {
    const Status ended = wait_for_oldest(cancel_patience);
    if (!ended.ok()) return lose("work that a reset cancelled did not end: " + ended.message);
  }
  if (context_ != refused) return;  // the one that hung was among them
  const auto state = context_->reset_state();
  if (!state) return lose(state.error().message);
  if (state->vram_lost) return lose("device memory was lost in a reset");
  last_reset_ = "the device was reset";
  settings_.log.write(LogLevel::warning, "amdgpu_pm4", settings_.device + ": " + last_reset_ + " between submissions");
  if (Status status = replace_context(); !status.ok()) lose("no new context after a reset: " + status.message);
}

void Queue::lose(std::string why) {
  if (!lost_.ok()) return;
  lost_ = device_lost(settings_.device + ": " + why);
  settings_.log.write(LogLevel::error, "amdgpu_pm4", lost_.message);
  for (const InFlight& work : in_flight_) results_.finish(work.value, lost_);
  in_flight_.clear();
}

Status Queue::wait_for_oldest() {
  Status ended = wait_for_oldest(room_patience);
  if (ended.ok() || ended.code == StatusCode::device_lost) return ended;
  return unavailable("no space for another submission: " + ended.message);
}

Status Queue::wait_for_oldest(std::chrono::seconds patience) {
  const std::uint64_t value = in_flight_.front().value;
  mutex_.unlock();
  const Status waited = timeline_->wait(value, Deadline::after(patience));
  mutex_.lock();
  if (!lost_.ok()) return lost_;
  if (oldest() > value) return {};  // somebody else has resolved it
  if (!waited.ok()) return waited;
  resolve_oldest();
  return lost_;
}

}  // namespace kiln::amdgpu_pm4
