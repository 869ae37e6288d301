// Jobs that share a submission, on the executor's pipeline without its threads, so that who shares with whom is
// certain.
#include "core/executor/interleavings/stepped_device.hpp"
#include "core/executor/jobs.hpp"

#include "executor/slot_pipeline.hpp"

#include <kiln/trace.hpp>

#include <catch2/catch.hpp>

#include <optional>
#include <utility>
#include <vector>

using namespace kiln;
using namespace kiln::test;
using executor::Claim;
using executor::Lane;

namespace {

class Served {
 public:
  explicit Served(Memory memory, TraceSink* trace = nullptr) : device(std::make_shared<SyntheticDevice>(memory)) {
    device->untimed = true;
    ExecutorContext context;
    context.config.in_flight = 4;
    context.trace = trace;
    pipeline_.emplace(device, context);
    // It has to turn out that jobs are small.
    if (auto first = run({add_one(device, {0})}); !first[0]) throw std::runtime_error(first[0].error().text());
  }

  std::vector<Result<Measurement>> run(const std::vector<Job>& jobs) {
    std::vector<executor::Job> all;
    for (const Job& job : jobs) all.push_back(job.submission);
    return serve(std::move(all));
  }

  // All are taken in before the first lane begins, and each lane is served until it has nothing left.
  std::vector<Result<Measurement>> serve(std::vector<executor::Job> jobs) {
    std::vector<std::uint64_t> values;
    for (executor::Job& job : jobs) {
      executor::Wake wake;
      const std::lock_guard lock(pipeline_->mutex());
      values.push_back(pipeline_->enter(*pipeline_->take_free(), std::move(job), {}, now_ns(), wake));
    }
    for (const Lane lane : {Lane::upload, Lane::dispatch, Lane::retire}) {
      while (Claim claim = pipeline_->begin(lane, std::nullopt)) {
        if (lane == Lane::upload) pipeline_->upload(claim);
        if (lane == Lane::dispatch) pipeline_->dispatch(claim);
        if (lane == Lane::retire) pipeline_->retire(claim, Deadline::never());
        pipeline_->end(claim);
      }
    }
    std::vector<Result<Measurement>> results;
    for (const std::uint64_t value : values) results.push_back(pipeline_->timeline().wait(value, {Clock::now()}, {}));
    return results;
  }

  const std::shared_ptr<SyntheticDevice> device;

 private:
  std::optional<executor::SlotPipeline> pipeline_;
};

// When the device began each job, from its submission on, and for how long it says that it worked.
class DeviceSpans final : public TraceSink {
 public:
  struct Span {
    std::uint64_t begin_ns = 0, ns = 0;
  };
  void add_job(std::span<const StageSpan> stages) noexcept override {
    std::uint64_t submitted_ns = 0;
    for (const StageSpan& span : stages) {
      if (span.stage == Stage::submit) submitted_ns = span.begin_ns;
      if (span.stage == Stage::device) all.push_back({span.begin_ns - submitted_ns, span.end_ns - span.begin_ns});
    }
  }
  std::vector<Span> all;
};

// Two that only read their inputs, then two that change them in place.
std::vector<Job> jobs_on(const std::shared_ptr<Device>& device) {
  return {add_one(device, {10}), add_one(device, {20}), in_place(device, {30}), in_place(device, {40})};
}

// Each job's result: its value once, 0 where it failed.
std::vector<float> told(const std::vector<Job>& jobs, const std::vector<Result<Measurement>>& results) {
  std::vector<float> values;
  for (std::size_t i = 0; i < jobs.size(); ++i) values.push_back(results[i] ? values_of(*jobs[i].output)[0] : 0);
  return values;
}

constexpr std::uint64_t shared_value = 2;  // the device's, of the submission after the first job's

}  // namespace

TEST_CASE("batches: small jobs share, but those that change wrapped memory in place go by themselves",
          "[executor][batch]") {
  const auto memory = GENERATE(Memory::plain, Memory::mapped, Memory::wrapped);
  Served served(memory);
  const auto jobs = jobs_on(served.device);
  const auto results = served.run(jobs);
  CHECK(told(jobs, results) == std::vector<float>{11, 21, 31, 41});
  const bool wraps = memory == Memory::wrapped;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    INFO("job " << i);
    CHECK(results[i]->batch == (!wraps ? 4u : i < 2 ? 2u : 1u));
  }
  CHECK(served.device->submitted() == (wraps ? 4u : 2u));
}

TEST_CASE("batches: a recording is never batched with other jobs", "[executor][batch]") {
  const auto memory = GENERATE(Memory::plain, Memory::mapped, Memory::wrapped);
  Served served(memory);
  const std::vector<Job> jobs{add_one(served.device, {10}), add_one(served.device, {20}), add_one(served.device, {30})};
  const auto recorded = executor::RecordedWork::create({jobs[1].submission});
  REQUIRE(recorded);
  REQUIRE((*recorded)->begin());
  const auto results = served.serve({jobs[0].submission, *recorded, jobs[2].submission});
  REQUIRE(results.size() == 3);
  for (const auto& result : results) {
    REQUIRE(result);
    CHECK(result->batch == 1u);
  }
  CHECK(results[0]->variant == "add_one");
  CHECK(results[1]->variant == "recording of 1");
  CHECK(told(jobs, results) == std::vector<float>{11, 21, 31});
  CHECK_FALSE((*recorded)->in_flight());
  CHECK(served.device->submitted() == 4u);
}

TEST_CASE("batches: a copy with an expected time of 40 us runs on a separate thread", "[executor][batch]") {
  const auto memory = GENERATE(Memory::plain, Memory::mapped, Memory::wrapped);
  // Until a copy was measured, it is expected to move 4 bytes a nanosecond.
  const std::size_t values = GENERATE(200u, 39'999u, 40'000u);
  CAPTURE(values);
  const auto device = std::make_shared<SyntheticDevice>(memory);
  ExecutorContext context;
  context.config.in_flight = 1;
  executor::SlotPipeline pipeline(device, context);
  executor::Wake wake;
  executor::Slot* const slot = pipeline.take_free();
  REQUIRE(slot != nullptr);
  CHECK(pipeline.enter(*slot, add_one(device, std::vector<float>(values)).submission, {}, now_ns(), wake) == 1u);
  const bool is_long = memory != Memory::wrapped && values == 40'000;
  CHECK(slot->upload_apart == is_long);
  CHECK(slot->readback_apart == is_long);
  CHECK(pipeline.next_is_apart(Lane::upload) == is_long);
  CHECK(pipeline.begin(Lane::upload, !is_long).seats.empty());
  CHECK(pipeline.begin(Lane::upload, is_long).seats.size() == 1);
}

TEST_CASE("batches: jobs count as small after measured device times below 20 us", "[executor][batch]") {
  const std::uint64_t device_ns = GENERATE(1'000u, 19'999u, 20'000u, 50'000u);
  CAPTURE(device_ns);
  const auto device = std::make_shared<SteppedDevice>(device_ns);
  executor::SlotPipeline pipeline(device, {});
  executor::Wake wake;
  executor::Slot* const first = pipeline.take_free();
  REQUIRE(first != nullptr);
  pipeline.enter(*first, add_one(device, {1}).submission, {}, now_ns(), wake);
  CHECK_FALSE(first->small);  // nothing is known yet
  for (const Lane lane : {Lane::upload, Lane::dispatch, Lane::retire}) {
    Claim claim = pipeline.begin(lane, std::nullopt);
    REQUIRE(claim.seats.size() == 1);
    if (lane == Lane::upload) pipeline.upload(claim);
    if (lane == Lane::dispatch) pipeline.dispatch(claim);
    if (lane == Lane::retire) device->work();
    if (lane == Lane::retire) CHECK(pipeline.retire(claim, {Clock::now()}));
    pipeline.end(claim);
  }
  const auto result = pipeline.timeline().wait(1, {Clock::now()}, {});
  REQUIRE(result);
  CHECK(result->device_ns == device_ns);
  executor::Slot* const second = pipeline.take_free();
  REQUIRE(second != nullptr);
  pipeline.enter(*second, add_one(device, {1}).submission, {}, now_ns(), wake);
  CHECK(second->small == (device_ns < 20'000));
}

TEST_CASE("batches: where the device fails one, each job is run by itself, and what it changes is changed once",
          "[executor][batch]") {
  const auto memory = GENERATE(Memory::plain, Memory::mapped, Memory::wrapped);
  Served served(memory);
  served.device->fail(shared_value, internal_error("one of them faulted"));
  // Those in place have been submitted by then where they go by themselves.
  const std::uint64_t first_alone = memory == Memory::wrapped ? 5 : 3;
  SECTION("all are innocent") {
    const auto jobs = jobs_on(served.device);
    const auto results = served.run(jobs);
    CHECK(told(jobs, results) == std::vector<float>{11, 21, 31, 41});
    std::vector<std::uint64_t> times;  // the device tells 1000 ns and its own value
    for (const auto& result : results) {
      REQUIRE(result);
      CHECK(result->batch == 1u);
      times.push_back(result->device_ns);
    }
    CHECK(times == (memory == Memory::wrapped ? std::vector<std::uint64_t>{1005, 1006, 1003, 1004}
                                              : std::vector<std::uint64_t>{1003, 1004, 1005, 1006}));
  }
  SECTION("the guilty one alone answers the failure") {
    served.device->fail(first_alone + 1, internal_error("page fault"));
    const auto jobs = jobs_on(served.device);
    const auto results = served.run(jobs);
    CHECK(told(jobs, results) == std::vector<float>{11, 0, 31, 41});
    REQUIRE_FALSE(results[1]);
    CHECK(results[1].error().code == StatusCode::internal);
    CHECK_THAT(results[1].error().message, Catch::Contains("synthetic:0") && Catch::Contains("page fault"));
  }
  CHECK(served.device->submitted() == 6u);
}

TEST_CASE("batches: the trace has the device time of each job, of a shared submission and of one that runs again",
          "[executor][batch]") {
  const bool runs_again = GENERATE(false, true);
  CAPTURE(runs_again);
  DeviceSpans spans;
  Served served(Memory::plain, &spans);
  spans.all.clear();  // of the first job
  served.device->wait_ns = 10'000;
  if (runs_again) served.device->fail(shared_value, internal_error("one of them faulted"));
  const auto jobs = jobs_on(served.device);
  const auto results = served.run(jobs);
  CHECK(told(jobs, results) == std::vector<float>{11, 21, 31, 41});
  CHECK(served.device->submitted() == (runs_again ? 6u : 2u));
  REQUIRE(spans.all.size() == 4);
  for (std::size_t i = 0; i < results.size(); ++i) {
    INFO("job " << i);
    REQUIRE(results[i]);
    CHECK(results[i]->device_ns == (runs_again ? 1003 + i : 1002));  // 1000 and the device's own value
    CHECK(spans.all[i].ns == results[i]->device_ns);
    CHECK(spans.all[i].begin_ns >= 5'000);  // in the middle of the wait, but for a few looks at the clock
    CHECK(spans.all[i].begin_ns < 5'100);
  }
}

TEST_CASE("batches: where the device refuses one, each job is submitted by itself", "[executor][batch]") {
  const auto memory = GENERATE(Memory::plain, Memory::mapped, Memory::wrapped);
  Served served(memory);
  served.device->refuse(shared_value, unsupported("too many passes"));
  SECTION("all are innocent") {
    const auto jobs = jobs_on(served.device);
    CHECK(told(jobs, served.run(jobs)) == std::vector<float>{11, 21, 31, 41});
  }
  SECTION("the guilty one alone answers the refusal") {
    served.device->refuse(shared_value + 1, unsupported("grid too large"));
    const auto jobs = jobs_on(served.device);
    const auto results = served.run(jobs);
    CHECK(told(jobs, results) == std::vector<float>{11, 0, 31, 41});
    REQUIRE_FALSE(results[1]);
    CHECK(results[1].error().code == StatusCode::unsupported);
  }
}
