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
    if (lane == Lane::retire) done = pipeline.retire(claim, {Clock::now()});
    if (!done) {
      (void)pipeline.put_back(claim);  // one thread serves all lanes here
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
      support::SimOptions{workload.model, support::sim_info(), true, false, nullptr}, clock);
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
  }
  VirtualRun run;
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
      pipeline.end(lane.claim);
      lane.claim = {};
      moved = true;
    }
    if (moved) continue;
    std::optional<std::uint64_t> soonest;  // a device's end matters once somebody waits for it
    if (!lanes[executor::index_of(Lane::retire)].claim) soonest = device->next_end();
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
