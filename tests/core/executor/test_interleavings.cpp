// Every order of events of three jobs in three slots, on the executor's own pipeline: its lanes, the device,
// submitters, a canceller, a waiter, one who does not wait long enough and the loss of the device take single steps; a
// lane that found nothing sleeps until the pipeline says that it has to look again. Orders that lead to the same state
// are tried once. Each way to a state is walked from the beginning.
#include "core/executor/jobs.hpp"

#include "executor/slot_pipeline.hpp"

#include <catch2/catch.hpp>

#include <set>
#include <sstream>

using namespace kiln;
using namespace kiln::test;
using executor::Claim;
using executor::Lane;
using executor::lane_count;
using executor::SlotPipeline;
using executor::Timeline;
using executor::Wake;

namespace {

// Works only when told to, one dispatch at a time, and keeps every promise of a Device.
class SteppedDevice final : public Device {
 public:
  // each_ns: what it says of every dispatch.
  explicit SteppedDevice(std::uint64_t each_ns) : each_ns_(each_ns) {
    info_.id = "stepped:0";
    info_.usable = true;
  }
  const DeviceInfo& info() const noexcept override { return info_; }
  Result<std::unique_ptr<Buffer>> create_buffer(const BufferDesc& desc) noexcept override;
  Result<std::unique_ptr<Program>> build(const KernelSource&) noexcept override { return unsupported("build"); }
  Result<std::unique_ptr<Program>> load(const KernelSource&, const ProgramBinary&) noexcept override {
    return unsupported("load");
  }
  Result<ProgramBinary> serialize(const Program&) noexcept override { return unsupported("serialize"); }
  Result<std::uint64_t> submit(const Dispatch& dispatch) noexcept override;
  Result<FenceResult> wait(std::uint64_t value, Deadline) noexcept override {
    if (lost_) return gone();
    if (value == 0 || value > submitted_) return not_found("never submitted");
    if (value > worked_) return timed_out("still running");
    if (!taken_.insert(value).second) return not_found("taken already");
    return FenceResult{each_ns_, 0};
  }

  // No time but that of being asked: whether a copy counts as long is not the machine's to say.
  std::uint64_t clock_ns() const noexcept override { return ++clock_; }

  bool can_work() const { return worked_ < submitted_ && !lost_; }
  void work();
  void lose() { lost_ = true; }
  bool lost() const { return lost_; }
  std::uint64_t submitted() const { return submitted_; }
  std::uint64_t worked() const { return worked_; }

 private:
  static Status gone() { return device_lost("lost by the test"); }

  const std::uint64_t each_ns_;
  DeviceInfo info_;
  mutable std::uint64_t clock_ = 0;
  bool lost_ = false;
  std::vector<std::vector<std::pair<const SyntheticProgram*, std::vector<Buffer*>>>> queue_;
  std::uint64_t submitted_ = 0;
  std::uint64_t worked_ = 0;
  std::set<std::uint64_t> taken_;
};

class PlainBuffer final : public Buffer {
 public:
  explicit PlainBuffer(std::uint64_t bytes) : own_(bytes, std::byte{0x7f}) {}
  std::uint64_t bytes() const noexcept override { return own_.size(); }
  Status write(std::uint64_t, std::span<const std::byte> from) noexcept override {
    std::copy(from.begin(), from.end(), own_.begin());
    return {};
  }
  Status read(std::uint64_t, std::span<std::byte> to) noexcept override {
    std::copy_n(own_.begin(), to.size(), to.begin());
    return {};
  }
  std::span<std::byte> mapped() noexcept override { return {}; }
  Result<UniqueFd> export_fd() noexcept override { return unsupported("export"); }
  std::span<float> floats() { return {reinterpret_cast<float*>(own_.data()), own_.size() / sizeof(float)}; }

 private:
  std::vector<std::byte> own_;
};

constexpr std::size_t refused_floats = 3;

Result<std::unique_ptr<Buffer>> SteppedDevice::create_buffer(const BufferDesc& desc) noexcept {
  if (lost_) return gone();
  if (desc.bytes == refused_floats * sizeof(float)) return unavailable("no memory for it");
  return std::unique_ptr<Buffer>(std::make_unique<PlainBuffer>(desc.bytes));
}

Result<std::uint64_t> SteppedDevice::submit(const Dispatch& dispatch) noexcept {
  if (lost_) return gone();
  auto& work = queue_.emplace_back();
  for (const PassLaunch& pass : dispatch.passes) {
    work.emplace_back(static_cast<const SyntheticProgram*>(pass.program),
                      std::vector<Buffer*>(pass.bindings.begin(), pass.bindings.end()));
  }
  return ++submitted_;
}

void SteppedDevice::work() {
  for (const auto& [program, buffers] : queue_[worked_]) {
    Memories memories;
    for (Buffer* buffer : buffers) memories.push_back(static_cast<PlainBuffer*>(buffer)->floats());
    program->run(memories);
  }
  ++worked_;
}

constexpr int job_count = 3;

struct Scenario {
  std::uint32_t slots = 3;
  int cancels = 0;         // this job, from 1, by somebody at any time; 0: nobody
  int fails = 0;           // this job's upload, from 1
  bool unordered = false;  // the one that fails
  bool small = false;      // the device is done so soon that jobs which wait together share a submission
  bool loses = false;      // the device is lost at any time
  int hastens = 0;         // this job, from 1, is waited for at any time by somebody who leaves at once
  bool late = false;       // the deadline of that job has passed from the start
};

// One walk: the steps that actors can take, and what the promises say after each.
class Walk {
 public:
  enum Actor : int {
    submitter = 0,
    lanes,
    device = lanes + static_cast<int>(lane_count),
    waiter,
    canceller,
    hasty_waiter,
    loser,
    actor_count
  };

  explicit Walk(const Scenario& scenario)
      : scenario_(scenario), device_(std::make_shared<SteppedDevice>(scenario.small ? 1'000 : 50'000)) {
    ExecutorContext context;
    context.config.in_flight = scenario.slots;
    pipeline_ = std::make_unique<SlotPipeline>(device_, context);
    for (int i = 0; i < job_count; ++i) {
      const bool failing = i + 1 == scenario.fails;  // found out by the upload lane
      Job job = add_one(device_, std::vector<float>(failing ? refused_floats : 1, static_cast<float>(i)));
      if (failing && scenario.unordered) job.submission.completion = Completion::unordered;
      if (scenario.late && i + 1 == scenario.hastens) job.submission.deadline = {Clock::now()};
      jobs_.push_back(std::move(job));
    }
    if (scenario.small) learn_that_jobs_are_small();
  }

  bool can(int actor) const {
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
      default: {
        const auto lane = static_cast<std::size_t>(actor - lanes);
        // The retire lane asks the device, which wakes whoever waits for it.
        if (claims_[lane] && static_cast<Lane>(lane) == Lane::retire && !worked_[lane]) return retire_awake();
        return claims_[lane] || awake_[lane];
      }
    }
  }

  void step(int actor) {
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
      default:
        return lane(static_cast<Lane>(actor - lanes));
    }
  }

  bool over() const { return taken_ + refused_ == job_count; }
  // What a promise was broken by; empty: none.
  std::string broken;
  std::size_t most_together = 0;  // jobs of one submission

  std::string state() const {
    std::ostringstream text;
    text << submitted_ << refused_ << submitter_awake_ << taken_ << cancel_tried_ << cancelled_ << hastened_
         << device_->submitted() << device_->worked() << device_->lost() << pipeline_->lost() << dispatched_;
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
    for (const Lane lane : {Lane::upload, Lane::dispatch, Lane::retire}) {
      text << pipeline_->ready(lane) << (pipeline_->next(lane) != nullptr ? pipeline_->next(lane)->value : 0);
    }
    text << pipeline_->idle();
    return text.str();
  }

 private:
  bool retire_awake() const {
    const auto* const slot = static_cast<const executor::Slot*>(claims_[2].seats.front());
    return slot->over || slot->device_value == 0 || device_->worked() >= slot->device_value || device_->lost();
  }

  // The fence of a job, from 1.
  std::uint64_t fence_of(int job) const { return static_cast<std::uint64_t>(job) + (scenario_.small ? 1 : 0); }

  // One job more, before the walk begins.
  void learn_that_jobs_are_small() {
    Wake told;
    {
      const std::lock_guard lock(pipeline_->mutex());
      pipeline_->enter(*pipeline_->take_free(), add_one(device_, {0}).submission, {}, now_ns(), told);
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

  void wake(const Wake& told) {
    for (std::size_t i = 0; i < lane_count; ++i) awake_[i] = awake_[i] || told.lanes[i];
    submitter_awake_ = submitter_awake_ || told.submitter;
    if (!pipeline_->lost()) return;
    awake_.fill(true);
    submitter_awake_ = true;
  }

  void submit() {
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

  // Three steps: claim, work, pass on.
  void lane(Lane which) {
    const auto i = static_cast<std::size_t>(which);
    if (!claims_[i]) {
      claims_[i] = pipeline_->begin(which, std::nullopt);
      awake_[i] = static_cast<bool>(claims_[i]);
      worked_[i] = false;
      return;
    }
    if (!worked_[i]) {
      if (which == Lane::upload) pipeline_->upload(claims_[i]);
      if (which == Lane::dispatch) dispatch(claims_[i]);
      if (which == Lane::retire && !pipeline_->retire(claims_[i], {Clock::now()})) {
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

  void dispatch(Claim& claim) {
    dispatched_ += '[';
    for (std::size_t s = 0; s < claim.seats.size(); ++s) dispatched_ += std::to_string(claim.seats[s]->value);
    most_together = std::max(most_together, claim.seats.size());
    pipeline_->dispatch(claim);
  }

  void take() {
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
    } else if (values_of(*jobs_[i].output) != std::vector<float>{static_cast<float>(i) + 1}) {
      broken = "job " + std::to_string(value) + ": early or overwritten result";
    }
    if (pipeline_->timeline().wait(value, {Clock::now()}, {})) broken = "a result was there twice";
  }

  void hasten() {
    hastened_ = true;
    const auto fence = fence_of(scenario_.hastens);
    if (pipeline_->timeline().state(fence) == Timeline::State::finished) return;
    const auto result = pipeline_->timeline().wait(fence, {Clock::now()}, {});
    if (result) {
      broken = "a job that is not finished has a result";
    } else if (result.error().code != StatusCode::timeout) {
      broken = "who does not wait long enough is answered " + result.error().text();
    } else if ((result.error().message.find("at the job's deadline") != std::string::npos) != scenario_.late) {
      broken = "of the wrong deadline: " + result.error().text();
    }
  }

  void cancel() {
    cancel_tried_ = true;
    Wake told;
    const Status status = pipeline_->cancel(fence_of(scenario_.cancels), told);
    cancelled_ = status.ok();
    if (!status.ok() && status.code != StatusCode::unavailable && status.code != StatusCode::not_found) {
      broken = "cancel: " + status.text();
    }
    wake(told);
  }

  const Scenario scenario_;
  std::shared_ptr<SteppedDevice> device_;
  std::unique_ptr<SlotPipeline> pipeline_;
  std::vector<Job> jobs_;
  std::array<Claim, lane_count> claims_;
  std::array<bool, lane_count> worked_{};
  std::array<bool, lane_count> awake_{};
  bool submitter_awake_ = true;
  bool cancel_tried_ = false;
  bool cancelled_ = false;
  bool hastened_ = false;
  std::string dispatched_;  // which fences went to the device together
  int submitted_ = 0;
  int refused_ = 0;
  int taken_ = 0;
};

struct Explored {
  std::size_t states = 0;
  std::size_t walks = 0;
  std::size_t ends = 0;
  std::size_t most_together = 0;
};

// Depth first over the orders of steps; the first broken promise is told with the order that led there.
Explored explore(const Scenario& scenario) {
  Explored explored;
  std::set<std::string> seen;
  std::vector<std::vector<int>> open{{}};
  while (!open.empty()) {
    const std::vector<int> way = std::move(open.back());
    open.pop_back();
    Walk walk(scenario);
    std::string order;
    for (const int actor : way) {
      walk.step(actor);
      order += std::to_string(actor) + " ";
    }
    ++explored.walks;
    explored.most_together = std::max(explored.most_together, walk.most_together);
    INFO("order of actors: " << order);
    REQUIRE(walk.broken == "");
    if (!seen.insert(walk.state()).second) continue;
    bool moved = false;
    for (int actor = 0; actor < Walk::actor_count; ++actor) {
      if (!walk.can(actor)) continue;
      moved = true;
      open.push_back(way);
      open.back().push_back(actor);
    }
    if (!moved) {
      REQUIRE(walk.over());  // nobody can move: then every result has been taken, else one is lost or a wake-up was
      ++explored.ends;
    }
  }
  explored.states = seen.size();
  return explored;
}

}  // namespace

TEST_CASE("interleavings: three jobs lose, double and hasten nothing in any order", "[executor][interleavings]") {
  for (const std::uint32_t slots : {1u, 2u, 3u}) {
    Scenario scenario;
    scenario.slots = slots;
    INFO(slots << " slots");
    const Explored explored = explore(scenario);
    CHECK(explored.ends >= 1);
    CHECK(explored.states > 100);
    WARN(slots << " slots: " << explored.states << " states, " << explored.walks << " walks");
  }
}

TEST_CASE("interleavings: likewise when one job is cancelled at any moment", "[executor][interleavings]") {
  for (int cancels = 1; cancels <= job_count; ++cancels) {
    Scenario scenario;
    scenario.cancels = cancels;
    INFO("job " << cancels << " is cancelled");
    CHECK(explore(scenario).ends >= 1);
  }
}

TEST_CASE("interleavings: likewise when one job fails before it reaches the device", "[executor][interleavings]") {
  for (int fails = 1; fails <= job_count; ++fails) {
    for (const bool unordered : {false, true}) {
      Scenario scenario;
      scenario.fails = fails;
      scenario.unordered = unordered;
      INFO("job " << fails << " fails, unordered " << unordered);
      CHECK(explore(scenario).ends >= 1);
    }
  }
}

TEST_CASE("interleavings: likewise when the device is lost at any moment", "[executor][interleavings]") {
  for (const bool small : {false, true}) {
    Scenario scenario;
    scenario.small = small;
    scenario.loses = true;
    INFO("small " << small);
    CHECK(explore(scenario).ends >= 1);
  }
}

TEST_CASE("interleavings: likewise when somebody waits for one job and leaves before its end",
          "[executor][interleavings]") {
  for (int hastens = 1; hastens <= job_count; ++hastens) {
    for (const bool late : {false, true}) {
      Scenario scenario;
      scenario.hastens = hastens;
      scenario.late = late;
      INFO("job " << hastens << " is waited for, its deadline has passed " << late);
      CHECK(explore(scenario).ends >= 1);
    }
  }
}

TEST_CASE("interleavings: likewise where small jobs share submissions", "[executor][interleavings]") {
  for (const std::uint32_t slots : {1u, 2u, 3u}) {
    Scenario scenario;
    scenario.slots = slots;
    scenario.small = true;
    INFO(slots << " slots");
    const Explored explored = explore(scenario);
    CHECK(explored.ends >= 1);
    CHECK(explored.most_together == slots);  // every size of a batch was among them
  }
  for (int job = 1; job <= job_count; ++job) {
    for (const bool cancelled : {false, true}) {
      Scenario scenario;
      scenario.small = true;
      (cancelled ? scenario.cancels : scenario.fails) = job;
      INFO("job " << job << (cancelled ? " is cancelled" : " fails"));
      CHECK(explore(scenario).ends >= 1);
    }
  }
}
