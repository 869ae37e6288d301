// What SlotPipeline's lanes do with the jobs that they hold.
#include "executor/slot_pipeline.hpp"

#include <algorithm>
#include <exception>
#include <utility>

namespace kiln::executor {
namespace {

constexpr std::chrono::milliseconds slice{5};  // of a wait that has to notice that it was abandoned

void follow(std::atomic<std::uint64_t>& usual_ns, std::uint64_t ns) noexcept {
  const std::uint64_t old = usual_ns.load(std::memory_order_relaxed);
  const double before = static_cast<double>(old == UINT64_MAX ? ns : old);
  usual_ns.store(static_cast<std::uint64_t>(before + 0.2 * (static_cast<double>(ns) - before)),
                 std::memory_order_relaxed);
}

constexpr std::uint64_t between(std::uint64_t begin, std::uint64_t end) noexcept {
  return end > begin ? end - begin : 0;
}

Slot& slot_at(const Claim& claim, std::size_t i) noexcept { return *static_cast<Slot*>(claim.seats[i]); }

}  // namespace

void SlotPipeline::fail(Slot& slot, Status why) {
  if (why.code == StatusCode::device_lost) lose(why);
  slot.failure = std::move(why);
  slot.over = true;
}

void SlotPipeline::lose(const Status& cause) {
  const std::lock_guard lock(mutex_);
  if (!lost_.ok()) return;
  lost_ = device_lost(cause.message);
  refusal_ = device_lost(name_ + ": the device is lost: " + cause.message);
  is_lost_.store(true, std::memory_order_release);
}

void SlotPipeline::upload(Claim& claim) {
  for (std::size_t i = 0; i < claim.seats.size(); ++i) {
    Slot& slot = slot_at(claim, i);
    if (lost()) {
      fail(slot, device_lost("the device was lost"));
      continue;
    }
    try {
      const std::lock_guard lock(constants_mutex_);
      Status status = slot.prepare(*device_, *constants_, [this](const Dispatch& dispatch) {
        const auto result = run_to_end(dispatch);
        return result ? Status{} : result.error();
      });
      if (!status.ok()) fail(slot, std::move(status));
    } catch (const std::exception& error) {
      fail(slot, unavailable(std::string("the job could not be begun: ") + error.what()));
    }
    park_if_abandoned();
    if (!slot.failure.ok()) continue;
    const std::uint64_t bytes = slot.work().upload_bytes(*device_);
    if (bytes != 0) upload_.learn(bytes, between(slot.at.built, slot.at.uploaded));
  }
}

Status SlotPipeline::submit_alone(Slot& slot) {
  slot.at.submitting = device_->clock_ns();
  std::span<const PassLaunch> launches = slot.launches();
  const std::span<const std::size_t> groups = slot.work().groups();
  for (std::size_t i = 0; i + 1 < groups.size(); ++i) {
    const std::uint64_t begin = device_->clock_ns();
    const auto result = run_to_end({launches.first(groups[i])});
    if (!result) return result.error();
    slot.work().took(result->device_ns != 0 ? result->device_ns : between(begin, device_->clock_ns()));
    launches = launches.subspan(groups[i]);
  }
  if (!groups.empty()) slot.at.submitting = device_->clock_ns();
  const auto value = device_->submit({launches});
  slot.at.submitted = device_->clock_ns();
  if (!value) return value.error();
  slot.device_value = *value;
  return {};
}

void SlotPipeline::dispatch(Claim& claim) {
  const std::size_t count = claim.seats.size();
  try {
    if (count > 1 && !lost()) {
      batch_.clear();
      for (std::size_t i = 0; i < count; ++i) {
        const auto launches = slot_at(claim, i).launches();
        batch_.insert(batch_.end(), launches.begin(), launches.end());
      }
      const std::uint64_t submitting = device_->clock_ns();
      const auto value = device_->submit({batch_});
      const std::uint64_t submitted = device_->clock_ns();
      park_if_abandoned();
      if (value) {
        for (std::size_t i = 0; i < count; ++i) {
          Slot& slot = slot_at(claim, i);
          slot.at.submitting = submitting;
          slot.at.submitted = submitted;
          slot.device_value = *value;
          slot.batch = slot_at(claim, 0).value;
        }
        return;
      }
      // Nothing has run. Which of them the device refuses, each finds out for itself.
    }
    for (std::size_t i = 0; i < count; ++i) {
      Slot& slot = slot_at(claim, i);
      if (slot.over) continue;
      Status status = lost() ? device_lost("the device was lost") : submit_alone(slot);
      park_if_abandoned();
      if (!status.ok()) fail(slot, std::move(status));
    }
  } catch (const std::exception& error) {
    for (std::size_t i = 0; i < count; ++i) {
      Slot& slot = slot_at(claim, i);
      if (slot.device_value == 0 && !slot.over) fail(slot, unavailable(std::string("not dispatched: ") + error.what()));
    }
  }
}

Result<FenceResult> SlotPipeline::run_to_end(const Dispatch& dispatch) {
  const auto value = device_->submit(dispatch);
  if (!value) return value.error();
  for (;;) {
    auto result = device_->wait(*value, Deadline::after(slice));
    park_if_abandoned();
    if (result || result.error().code != StatusCode::timeout) return result;
  }
}

// The job's share of a submission that failed as a whole. What it reads is as it was (Work::may_share), so it begins
// anew.
void SlotPipeline::run_alone(Slot& slot) {
  Status status = slot.upload_again(*device_);
  if (!status.ok()) return fail(slot, std::move(status));
  slot.at.submitting = slot.at.submitted = device_->clock_ns();
  const auto result = run_to_end({slot.launches()});
  if (!result) return fail(slot, result.error());
  slot.at.finished = device_->clock_ns();
  slot.at.device_begun = result->begun_ns;
  slot.device_ns = result->device_ns;
}

bool SlotPipeline::retire(Claim& claim, Deadline patience) {
  const std::size_t count = claim.seats.size();
  Slot& first = slot_at(claim, 0);
  std::optional<Result<FenceResult>> result;
  if (!first.over && first.device_value != 0 && !lost()) {
    result.emplace(device_->wait(first.device_value, patience));
    park_if_abandoned();
    if (!*result && result->error().code == StatusCode::timeout) return false;
  }
  const std::uint64_t now = device_->clock_ns();
  const std::uint64_t since = finished_at(now);
  for (std::size_t i = 0; i < count; ++i) {
    Slot& slot = slot_at(claim, i);
    if (slot.over) continue;
    if (!result) {
      fail(slot, device_lost("the device was lost"));
    } else if (*result) {
      slot.at.finished = now;
      slot.at.device_begun = (*result)->begun_ns;
      slot.device_ns = (*result)->device_ns;
      slot.jobs_in_batch = static_cast<std::uint32_t>(count);
    } else if (count > 1 && result->error().code != StatusCode::device_lost) {
      run_alone(slot);
    } else {
      fail(slot, result->error());
    }
    if (!slot.over) read_back(slot, since, slot.jobs_in_batch);
  }
  return true;
}

std::uint64_t SlotPipeline::finished_at(std::uint64_t now) {
  const std::lock_guard lock(mutex_);
  return std::exchange(last_finished_ns_, std::max(last_finished_ns_, now));
}

void SlotPipeline::read_back(Slot& slot, std::uint64_t device_since_ns, std::uint32_t jobs) {
  if (Status status = slot.readback(*device_); !status.ok()) return fail(slot, std::move(status));
  const std::uint64_t bytes = slot.work().readback_bytes(*device_);
  if (bytes != 0) readback_.learn(bytes, between(slot.at.reading, slot.at.done));
  const std::uint64_t busy = between(std::max(slot.at.submitting, device_since_ns), slot.at.finished);
  const std::uint64_t device_ns = slot.device_ns != 0 ? slot.device_ns : busy;
  if (!slot.work().groups().empty()) return slot.work().took(device_ns);  // says nothing of the usual run
  follow(device_ns_, device_ns / jobs);
  if (adaptive_) {
    const std::lock_guard lock(mutex_);
    depth_.add({static_cast<double>(between(slot.at.begun, slot.at.uploaded)), static_cast<double>(device_ns) / jobs,
                static_cast<double>(between(slot.at.reading, slot.at.done))});
  }
}

Result<Measurement> SlotPipeline::outcome_of(Slot& slot) {
  if (lost() && slot.over && slot.failure.code == StatusCode::device_lost) {
    const std::lock_guard lock(mutex_);
    slot.failure = lost_;
  }
  learn(slot);
  if (!slot.failure.ok()) return slot.failure.within(name_);
  return slot.measured();
}

void SlotPipeline::learn(const Slot& slot) {
  const bool good = slot.failure.ok();
  const bool counts = slot.packed != 0 && counters_ != nullptr;
  const std::lock_guard lock(mutex_);
  if (!slot.cancelled && slot.at.done != 0) {
    run_average_.add(slot.at.begun, slot.at.done, good ? RunAverage::Outcome::finished : RunAverage::Outcome::failed);
  }
  if (!counts && trace_ == nullptr) return;
  // Both may be gone once the queue has been abandoned.
  if (abandoned_.load(std::memory_order_relaxed)) return;
  if (counts) counters_->prepared.fetch_add(slot.packed, std::memory_order_relaxed);
  if (trace_ != nullptr) slot.tell(*trace_, device_id_);
}

}  // namespace kiln::executor
