#include "core/executor/interleavings/walk.hpp"

#include <algorithm>
#include <sstream>

namespace kiln::test {

using executor::Claim;
using executor::Lane;
using executor::lane_count;
using executor::SlotPipeline;
using executor::Timeline;
using executor::Wake;

Walk::Walk(const Scenario& scenario)
    : scenario_(scenario),
      device_(std::make_shared<SteppedDevice>(scenario.small ? 1'000 : 50'000, scenario.apart ? 100'000 : 1)) {
  ExecutorContext context;
  context.config.in_flight = scenario.slots;
  pipeline_ = std::make_unique<SlotPipeline>(device_, context);
  for (int i = 0; i < job_count; ++i) {
    const bool failing = i + 1 == scenario.fails;  // found out by the upload lane
    Job job = add_one(device_, std::vector<float>(floats_of(i + 1), static_cast<float>(i)));
    if ((failing && scenario.unordered) || i + 1 == scenario.overtakes)
      job.submission.completion = Completion::unordered;
    if (scenario.late && i + 1 == scenario.hastens) job.submission.deadline = {Clock::now()};
    jobs_.push_back(std::move(job));
  }
  if (learns()) learn_from_one_job();
}

std::size_t Walk::floats_of(int job) const {
  if (job == scenario_.fails) return SteppedDevice::refused_floats;
  return job == scenario_.longs ? 64 : 1;
}

bool Walk::can(int actor) const {
  switch (actor) {
    case submitter: {
      const std::lock_guard lock(pipeline_->mutex());
      return submitted_ + refused_ < job_count && submitter_awake_;
    }
    case device:
      return device_->can_work();
    case waiter:
      return taken_ < submitted_ && pipeline_->timeline().state(fence_of(taken_ + 1)) == Timeline::State::finished;
    case canceller:
      return scenario_.cancels != 0 && !cancel_tried_ && submitted_ >= scenario_.cancels;
    case hasty_waiter:
      return scenario_.hastens != 0 && !hastened_ && submitted_ >= scenario_.hastens && taken_ < scenario_.hastens;
    case loser:
      return scenario_.loses && !device_->lost();
    case starter:
      return scenario_.apart && !has_apart_ && submitted_ >= 1;
    case apart:
      if (!has_apart_) return false;
      return apart_claim_ ? apart_worked_ || done_with(apart_claim_) : apart_awake_;
    default: {
      const auto lane = static_cast<std::size_t>(actor - lanes);
      const auto which = static_cast<Lane>(lane);
      if (which == Lane::beside && (!has_apart_ || scenario_.overtakes == 0)) return false;
      // These ask the device, which wakes whoever waits for it.
      if (claims_[lane] && (which == Lane::retire || which == Lane::beside) && !worked_[lane]) {
        return done_with(claims_[lane]) || (scenario_.apart && news_[lane]);
      }
      return claims_[lane] || awake_[lane];
    }
  }
}

void Walk::step(int actor) {
  move(actor);
  check_order();
}

void Walk::check_order() {
  const auto pending = [&](int job) { return pipeline_->timeline().state(fence_of(job)) == Timeline::State::pending; };
  for (int later = 2; later <= submitted_; ++later) {
    if (pending(later)) continue;
    for (int job = 1; job < later; ++job) {
      if (!pending(job)) continue;
      overtaken = true;
      const bool may = later == scenario_.overtakes || (later == scenario_.fails && scenario_.unordered) ||
                       (cancelled_ && later == scenario_.cancels);
      if (!may) broken = "job " + std::to_string(later) + " finished before job " + std::to_string(job);
    }
  }
}

void Walk::move(int actor) {
  switch (actor) {
    case submitter:
      return submit();
    case device:
      return device_->work();
    case waiter:
      return take();
    case canceller:
      return cancel();
    case hasty_waiter:
      return hasten();
    case loser:
      return device_->lose();
    case starter:  // the submission that starts it is told of afterwards
      has_apart_ = apart_awake_ = true;
      awake_[executor::index_of(Lane::beside)] = scenario_.overtakes != 0;
      news_.fill(true);
      return;
    case apart:
      return lane_apart();
    default:
      return lane(static_cast<Lane>(actor - lanes));
  }
}

std::string Walk::state() const {
  std::ostringstream text;
  text << submitted_ << refused_ << submitter_awake_ << taken_ << cancel_tried_ << cancelled_ << hastened_
       << device_->submitted() << device_->worked() << device_->lost() << pipeline_->lost() << dispatched_;
  text << '|' << has_apart_ << apart_awake_ << apart_worked_;
  text << (scenario_.apart && news_[executor::index_of(Lane::retire)]);
  text << (scenario_.overtakes != 0 && news_[executor::index_of(Lane::beside)]);
  for (std::size_t s = 0; s < apart_claim_.seats.size(); ++s) text << apart_claim_.seats[s]->value;
  for (std::size_t i = 0; i < lane_count; ++i) {
    text << '|' << awake_[i] << worked_[i];
    for (std::size_t s = 0; s < claims_[i].seats.size(); ++s) {
      text << claims_[i].seats[s]->value << (claims_[i].seats[s]->cancelled ? 'c' : '.')
           << (claims_[i].seats[s]->over ? 'o' : '.');
    }
  }
  for (int i = 1; i <= job_count; ++i) {
    text << '/' << static_cast<int>(pipeline_->timeline().state(fence_of(i)));
  }
  const std::lock_guard lock(pipeline_->mutex());
  for (const Lane lane : {Lane::upload, Lane::dispatch, Lane::retire, Lane::beside}) {
    text << pipeline_->ready(lane) << (pipeline_->next(lane) != nullptr ? pipeline_->next(lane)->value : 0);
  }
  text << pipeline_->idle();
  return text.str();
}

bool Walk::done_with(const Claim& claim) const {
  const auto* const slot = static_cast<const executor::Slot*>(claim.seats.front());
  return slot->over || slot->device_value == 0 || device_->worked() >= slot->device_value || device_->lost();
}

void Walk::learn_from_one_job() {
  Wake told;
  {
    const std::lock_guard lock(pipeline_->mutex());
    const std::vector<float> input(scenario_.longs != 0 ? floats_of(scenario_.longs) : 1, 0.0f);
    pipeline_->enter(*pipeline_->take_free(), add_one(device_, input).submission, {}, now_ns(), told);
  }
  for (const Lane which : {Lane::upload, Lane::dispatch, Lane::retire}) {
    Claim claim = pipeline_->begin(which, std::nullopt);
    if (which == Lane::upload) pipeline_->upload(claim);
    if (which == Lane::dispatch) pipeline_->dispatch(claim);
    if (which == Lane::dispatch) device_->work();
    if (which == Lane::retire) pipeline_->retire(claim, {Clock::now()});
    pipeline_->end(claim);
  }
  if (!pipeline_->timeline().wait(1, {Clock::now()}, {})) broken = "the job before the walk failed";
}

void Walk::wake(const Wake& told) {
  for (std::size_t i = 0; i < lane_count; ++i) awake_[i] = awake_[i] || told.lanes[i];
  if (scenario_.overtakes == 0) awake_[executor::index_of(Lane::beside)] = false;
  apart_awake_ = apart_awake_ || told.lane(Lane::retire);
  news_.fill(true);
  submitter_awake_ = submitter_awake_ || told.submitter;
  if (!pipeline_->lost()) return;
  awake_.fill(true);
  awake_[executor::index_of(Lane::beside)] = scenario_.overtakes != 0;
  apart_awake_ = submitter_awake_ = true;
}

void Walk::submit() {
  Wake told;
  {
    const std::lock_guard lock(pipeline_->mutex());
    if (!pipeline_->refusal().ok()) {
      if (pipeline_->refusal().code != StatusCode::device_lost) broken = "refused: " + pipeline_->refusal().text();
      ++refused_;
      return;
    }
    executor::Slot* const slot = pipeline_->take_free();
    if (slot == nullptr) {
      submitter_awake_ = false;
      return;
    }
    const std::uint64_t value =
        pipeline_->enter(*slot, jobs_[static_cast<std::size_t>(submitted_)].submission,
                         jobs_[static_cast<std::size_t>(submitted_)].submission.deadline, now_ns(), told);
    ++submitted_;
    if (value != fence_of(submitted_)) broken = "a value was skipped";
  }
  wake(told);
}

void Walk::lane(Lane which) {
  const auto i = static_cast<std::size_t>(which);
  if (!claims_[i]) {
    const bool others_too = which == Lane::retire && has_apart_;
    claims_[i] = pipeline_->begin(which, others_too ? std::optional(false) : std::nullopt);
    awake_[i] = static_cast<bool>(claims_[i]);
    worked_[i] = false;
    news_[i] = false;
    return;
  }
  const bool comes_back = which == Lane::retire || which == Lane::beside;
  if (!worked_[i] && comes_back && !done_with(claims_[i])) {  // there is news
    const bool for_the_other = pipeline_->put_back(claims_[i]);
    apart_awake_ = apart_awake_ || for_the_other;
    claims_[i] = {};
    awake_[i] = awake_[executor::index_of(Lane::retire)] = true;  // in truth one thread looks at both
    return;
  }
  if (!worked_[i]) {
    if (which == Lane::upload) pipeline_->upload(claims_[i]);
    if (which == Lane::dispatch) dispatch(claims_[i]);
    if (comes_back && !pipeline_->retire(claims_[i], {Clock::now()})) {
      broken = "the device had finished, and retire() did not see it";
    }
    worked_[i] = true;
    return;
  }
  const Wake told = pipeline_->end(claims_[i]);
  claims_[i] = {};
  awake_[i] = true;  // it looks again by itself
  wake(told);
}

void Walk::lane_apart() {
  if (!apart_claim_) {
    apart_claim_ = pipeline_->begin(Lane::retire, true);
    apart_awake_ = static_cast<bool>(apart_claim_);
    apart_worked_ = false;
  } else if (!apart_worked_) {
    if (!pipeline_->retire(apart_claim_, {Clock::now()}))
      broken = "the device had finished, and retire() did not see it";
    apart_worked_ = true;
  } else {
    const Wake told = pipeline_->end(apart_claim_);
    apart_claim_ = {};
    apart_awake_ = true;
    wake(told);
  }
}

void Walk::dispatch(Claim& claim) {
  dispatched_ += '[';
  for (std::size_t s = 0; s < claim.seats.size(); ++s) dispatched_ += std::to_string(claim.seats[s]->value);
  most_together = std::max(most_together, claim.seats.size());
  pipeline_->dispatch(claim);
}

void Walk::take() {
  const auto value = fence_of(taken_ + 1);
  const auto result = pipeline_->timeline().wait(value, {Clock::now()}, {});
  const auto i = static_cast<std::size_t>(taken_);
  ++taken_;
  const bool may_fail = taken_ == scenario_.fails || (cancelled_ && taken_ == scenario_.cancels);
  const bool may_be_lost = device_->lost() && !result && result.error().code == StatusCode::device_lost;
  if (!result) {
    if (!may_fail && !may_be_lost) broken = "job " + std::to_string(value) + " failed: " + result.error().text();
    if (cancelled_ && taken_ == scenario_.cancels && result.error().code != StatusCode::cancelled) {
      broken = "a cancelled job answers " + result.error().text();
    }
  } else if (cancelled_ && taken_ == scenario_.cancels) {
    broken = "a job that was cancelled has run";
  } else if (values_of(*jobs_[i].output) != std::vector<float>(floats_of(taken_), static_cast<float>(i) + 1)) {
    broken = "job " + std::to_string(value) + ": early or overwritten result";
  }
  if (pipeline_->timeline().wait(value, {Clock::now()}, {})) broken = "a result was there twice";
}

void Walk::hasten() {
  hastened_ = true;
  const auto fence = fence_of(scenario_.hastens);
  if (pipeline_->timeline().state(fence) == Timeline::State::finished) return;
  const auto result = pipeline_->timeline().wait(fence, {Clock::now()}, {});
  if (result) {
    broken = "a job that is not finished has a result";
  } else if (result.error().code != StatusCode::timeout) {
    broken = "who does not wait long enough is answered " + result.error().text();
  } else if ((result.error().message.find("by the job's deadline") != std::string::npos) != scenario_.late) {
    broken = "of the wrong deadline: " + result.error().text();
  }
}

void Walk::cancel() {
  cancel_tried_ = true;
  Wake told;
  const Status status = pipeline_->cancel(fence_of(scenario_.cancels), told);
  cancelled_ = status.ok();
  if (!status.ok() && status.code != StatusCode::unavailable && status.code != StatusCode::not_found) {
    broken = "cancel: " + status.text();
  }
  wake(told);
}

}  // namespace kiln::test
