#include "core/executor/virtual_schedule.hpp"

#include "core/executor/jobs.hpp"

#include <algorithm>
#include <optional>

namespace kiln::test {
namespace {

using executor::Claim;
using executor::Lane;
using executor::SlotPipeline;
using executor::Wake;

struct ScheduledLane {
  Claim claim;
  std::uint64_t until = 0;
};

struct Planned {
  Submission submission;
  std::shared_ptr<HostTensor> output;
  float input = 0;
};

Planned plan_job(const std::shared_ptr<Device>& device, const std::shared_ptr<const Program>& program, std::size_t i,
                 std::uint64_t bytes) {
  const auto floats = static_cast<std::size_t>(bytes / sizeof(float));
  Planned job;
  job.input = static_cast<float>(i) + 0.5f;
  auto made = add_one(device, std::vector<float>(floats, job.input));
  job.submission = std::move(made.submission);
  KernelPlan plan = *job.submission.plan;
  plan.passes[0].source.text = "scale";
  job.submission.plan = std::make_shared<const KernelPlan>(std::move(plan));
  job.submission.programs = {ProgramHandle(program)};
  job.output = made.output;
  return job;
}

bool may_overtake(SlotPipeline& pipeline) {
  const std::lock_guard lock(pipeline.mutex());
  return pipeline.ready(Lane::beside);
}

// Every lane that is idle begins what is its turn; answers whether any did.
bool begin_all(SlotPipeline& pipeline, std::array<ScheduledLane, executor::lane_count>& lanes,
               support::SimClock& clock) {
  bool any = false;
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    const auto lane = static_cast<Lane>(i);
    if (lanes[i].claim) continue;
    Claim claim = pipeline.begin(lane, std::nullopt);
    if (!claim) continue;
    const std::uint64_t now = clock.now();
    bool done = true;
    if (lane == Lane::upload) pipeline.upload(claim);
    if (lane == Lane::dispatch) pipeline.dispatch(claim);
    if (lane == Lane::retire || lane == Lane::beside) done = pipeline.retire(claim, {Clock::now()});
    if (!done) {
      (void)pipeline.put_back(claim);  // one scheduler serves all lanes here
      continue;
    }
    lanes[i] = {claim, clock.now()};
    clock.set(now);  // what the step has spent passes beside what the others do
    any = true;
  }
  return any;
}

}  // namespace

VirtualRun run_virtually(const VirtualWorkload& workload, std::uint32_t in_flight, bool adaptive) {
  const auto clock = std::make_shared<support::SimClock>(support::Pace::stepped);
  const auto device = std::make_shared<support::SimDevice>(
      support::SimOptions{.model = workload.model, .info = support::sim_info()}, clock);
  KernelSource source;
  source.dialect = Dialect::glsl;
  source.text = "scale";
  source.constants = {{"FACTOR", "2"}};
  const std::shared_ptr<const Program> program = device->build(source).value();
  ExecutorContext context;
  context.config.in_flight = in_flight;
  context.config.adaptive_depth = adaptive;
  context.trace = workload.trace;
  SlotPipeline pipeline(device, context);

  std::vector<Planned> jobs;
  for (std::size_t i = 0; i < workload.jobs; ++i) {
    jobs.push_back(plan_job(device, program, i, workload.bytes_of ? workload.bytes_of(i) : workload.bytes));
    if (workload.completion_of) jobs.back().submission.completion = workload.completion_of(i);
  }
  VirtualRun run;
  run.finished_ns.resize(jobs.size());
  std::array<ScheduledLane, executor::lane_count> lanes;
  const std::uint64_t start = clock->now();
  std::size_t next = 0;
  double depths = 0;
  for (;;) {
    bool moved = false;
    for (; next < jobs.size(); ++next) {
      const std::lock_guard lock(pipeline.mutex());
      executor::Slot* const slot = pipeline.take_free();
      if (slot == nullptr) break;
      Wake wake;
      pipeline.enter(*slot, std::move(jobs[next].submission), {}, clock->now(), wake);
      run.deepest = std::max(run.deepest, pipeline.depth());
      depths += pipeline.depth();
      moved = true;
    }
    moved = begin_all(pipeline, lanes, *clock) || moved;
    for (ScheduledLane& lane : lanes) {
      if (!lane.claim || lane.until > clock->now()) continue;
      const Claim ended = lane.claim;
      std::vector<std::uint64_t> values;
      for (std::size_t s = 0; s < ended.seats.size(); ++s) values.push_back(ended.seats[s]->value);
      pipeline.end(lane.claim);
      lane.claim = {};
      moved = true;
      for (const std::uint64_t value : values) {
        if (pipeline.timeline().state(value) == executor::Timeline::State::finished) {
          run.finished_ns[value - 1] = clock->now() - start;
        }
      }
    }
    if (moved) continue;
    std::optional<std::uint64_t> soonest;  // a device's end matters once somebody waits for it
    const bool overtakes = !lanes[executor::index_of(Lane::beside)].claim && may_overtake(pipeline);
    if (!lanes[executor::index_of(Lane::retire)].claim || overtakes) soonest = device->next_end();
    for (const ScheduledLane& lane : lanes) {
      if (lane.claim) soonest = std::min(soonest.value_or(lane.until), lane.until);
    }
    if (!soonest) break;
    clock->set(std::max(*soonest, clock->now()));
  }
  run.ns = clock->now() - start;
  run.usual_depth = depths / static_cast<double>(jobs.size());
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const auto result = pipeline.timeline().wait(i + 1, {Clock::now()}, {});
    const auto values = jobs[i].output->as<float>();
    const bool right =
        result && std::all_of(values.begin(), values.end(), [&](float v) { return v == 2 * jobs[i].input; });
    run.failed += right ? 0 : 1;
  }
  const std::lock_guard lock(pipeline.mutex());
  if (!pipeline.idle()) ++run.failed;
  return run;
}

}  // namespace kiln::test
