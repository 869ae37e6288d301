// What Queue does with submissions that ended, and with a device that was reset.
#include <set>

#include "amdgpu_pm4/device/queue/queue.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

// Between a point that is passed and the outcome that the kernel driver tells of the same work.
constexpr std::chrono::seconds outcome_patience{1};
constexpr std::chrono::seconds room_patience{60};    // the kernel driver gives up a compute job after as long
constexpr std::chrono::seconds cancel_patience{10};  // for what a reset cancels to be told so
constexpr std::uint64_t reset_interval_ns = 100'000'000;

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
    if (work.context->outcome(work.number, ring_, {Clock::now()}).code == StatusCode::timeout) return;
    resolve_oldest();
  }
}

void Queue::resolve_oldest() {
  const InFlight work = std::move(in_flight_.front());
  in_flight_.pop_front();
  Status how = work.context->outcome(work.number, ring_, Deadline::after(outcome_patience));
  // The stamps are the device's own word for it: work that was thrown away may be told as done.
  if (how.ok() && work.stamps.last() == 0) how = internal_error("told as done, and its last pass has not ended");
  if (how.ok()) {
    const std::uint64_t begin = work.stamps.first();
    results_.finish(work.value, FenceResult{clock_.ns_between(begin, work.stamps.last()), clock_.on_host_clock(begin)});
  } else {
    fail(work, how);
  }
  for (RingBuffer* ring : {commands_.get(), arguments_.get(), reports_.get()}) ring->space().passed(work.value);
}

void Queue::fail(const InFlight& work, const Status& how) {
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
  if (how.code == StatusCode::device_lost || !state || state->vram_lost) {
    const std::string why = !state                                ? state.error().message
                            : how.code == StatusCode::device_lost ? how.message
                                                                  : "its memory was lost in a reset";
    lose(state ? blame(work, how, *state) + "; " + why : why);
    results_.finish(work.value, lost_);
    return;
  }
  last_reset_ = blame(work, how, *state);
  settings_.log.write(LogLevel::warning, "amdgpu_pm4", what + ": " + last_reset_);
  results_.finish(work.value, unavailable(what + ": " + last_reset_));
  if (Status status = replace_context(); !status.ok()) lose("no new context after a reset: " + status.message);
}

// Says what happened, and puts who did it into quarantine where that is certain.
std::string Queue::blame(const InFlight& work, const Status& how, const ResetState& state) {
  if (state.reset && !state.guilty) return "another program's work had the device reset (" + how.message + ")";
  InFlight::Passes passes = work.unfinished();
  // The kernel driver knows that this was it; what was written before the reset may be lost.
  if (passes.begin == passes.end && state.guilty) passes = {0, work.kernels.size()};
  if (passes.begin == passes.end) return "it failed, and none of its passes was running (" + how.message + ")";
  std::set<Digest> programs;
  for (std::size_t i = passes.begin; i < passes.end; ++i) programs.insert(work.kernels[i]->digest);
  std::string where = "pass " + std::to_string(passes.begin);
  if (passes.end - passes.begin > 1) where += " to " + std::to_string(passes.end - 1);
  const std::string name = work.kernels[passes.begin]->name();
  // A device that names a fault has stopped at it; one that names none, or its watchdog, has hung.
  const bool stopped =
      !state.fault.empty() && !state.fault.starts_with("watchdog") && !state.fault.starts_with("planted");
  const std::string did = stopped ? " was stopped by a fault" : " hung the device";
  const std::string why = " (" + (state.fault.empty() ? how.message : state.fault) + ")";
  if (programs.size() == 1) {
    quarantine_.add(*programs.begin());
    return where + ": " + name + did + " and is in quarantine" + why;
  }
  for (const Digest& program : programs) quarantine_.suspect(program);
  return where + ": " + name + " or one of " + std::to_string(programs.size() - 1) + " others" + did +
         "; each runs alone from now on" + why;
}

Status Queue::replace_context() {
  auto context = winsys_.create_context(Priority::normal);
  if (!context) return context.error();
  context_ = std::move(context).value();
  return {};
}

// The kernel driver refuses the context: all that is in flight ends soon, one way or the other.
void Queue::recover() {
  const std::shared_ptr<Context> refused = context_;
  while (!in_flight_.empty()) {
    const Status waited = timeline_->wait(in_flight_.front().value, Deadline::after(cancel_patience));
    if (!waited.ok()) return lose("what a reset cancelled never ended: " + waited.message);
    resolve_oldest();
    if (!lost_.ok()) return;
  }
  if (context_ != refused) return;  // the one that hung was among them
  const auto state = context_->reset_state();
  if (!state) return lose(state.error().message);
  if (state->vram_lost) return lose("its memory was lost in a reset");
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
  const Status waited = timeline_->wait(in_flight_.front().value, Deadline::after(room_patience));
  if (waited.code == StatusCode::device_lost) return waited;
  if (!waited.ok()) return unavailable("there is no room for another submission: " + waited.message);
  resolve_oldest();
  return lost_;
}

}  // namespace kiln::amdgpu_pm4
