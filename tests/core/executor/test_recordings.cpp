#include "core/executor/jobs.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <future>
#include <map>
#include <mutex>
#include <thread>

using namespace kiln;
using namespace kiln::test;

namespace {

constexpr std::chrono::milliseconds short_wait{5};

class Spans final : public TraceSink {
 public:
  struct Told {
    std::string device, label;
    StageSpan span;
  };
  // What is borrowed is copied.
  void add_job(std::span<const StageSpan> stages) noexcept override {
    const std::lock_guard lock(mutex_);
    for (const StageSpan& span : stages) told_.push_back({std::string(span.device), std::string(span.label), span});
  }
  std::vector<Told> told() const {
    const std::lock_guard lock(mutex_);
    return told_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<Told> told_;
};

}  // namespace

TEST_CASE("recordings: a sequence is replayed as one job, with what its tensors hold then", "[executor][recording]") {
  const auto memory = GENERATE(Memory::plain, Memory::mapped, Memory::wrapped);
  const auto device = std::make_shared<SyntheticDevice>(memory);
  const auto executor = ring(2);
  const auto weights = constant_of({2, 3});
  std::vector<Job> jobs{two_passes(device, {1, 2}), add_one(device, {5, 6}), weigh(device, {10, 10}, weights)};
  std::vector<Submission> submissions;
  for (const Job& job : jobs) submissions.push_back(job.submission);
  const auto recorded = executor->record(submissions);
  REQUIRE(recorded);
  CHECK((*recorded)->jobs() == 3);
  const auto inputs = jobs[0].submission.tensors[0].host->as<float>();
  for (int round = 0; round < 3; ++round) {
    inputs[0] = static_cast<float>(round);
    const auto fence = executor->replay(*recorded, Deadline::never());
    REQUIRE(fence);
    const auto measured = executor->wait(*fence, Deadline::never());
    REQUIRE(measured);
    CHECK(measured->variant == "recording of 3");
    CHECK(values_of(*jobs[0].output) == std::vector<float>{(static_cast<float>(round) + 1) * 2, 6});
    CHECK(values_of(*jobs[1].output) == std::vector<float>{6, 7});
    CHECK(values_of(*jobs[2].output) == std::vector<float>{20, 30});
    CHECK(device->submitted() == static_cast<std::uint64_t>(round) + 1);  // all passes in one submission
  }
}

TEST_CASE("recordings: what one submission writes and a later one reads stays on the device", "[executor][recording]") {
  const auto device = std::make_shared<SyntheticDevice>();
  const auto executor = ring(2);
  Job first = add_one(device, {1, 2});
  Job second = add_one(device, {0, 0});
  second.submission.tensors[0].host = first.output;  // reads what the first writes
  const auto recorded = executor->record({first.submission, second.submission});
  REQUIRE(recorded);
  CHECK(device->buffers_alive(BufferUsage::storage) == 1);  // the tensor between them
  REQUIRE(executor->wait(executor->replay(*recorded, Deadline::never()).value(), Deadline::never()));
  CHECK(values_of(*first.output) == std::vector<float>{2, 3});
  CHECK(values_of(*second.output) == std::vector<float>{3, 4});
}

namespace {

TensorArgument on_device(std::uint64_t bytes, std::shared_ptr<const HostTensor> before = nullptr,
                         std::shared_ptr<HostTensor> after = nullptr) {
  return {nullptr, nullptr,
          std::make_shared<const DeviceTensor>(DeviceTensor{bytes, std::move(before), std::move(after)})};
}

}  // namespace

TEST_CASE("recordings: of several, the one that is named is replayed", "[executor][recording]") {
  const auto device = std::make_shared<SyntheticDevice>();
  const auto executor = ring(2);
  const std::vector<Job> jobs{add_one(device, {1, 2}), two_passes(device, {1, 2}), add_one(device, {5, 6})};
  std::vector<std::shared_ptr<Recording>> all;
  for (const Job& job : jobs) all.push_back(executor->record({job.submission}).value());
  for (const std::size_t named : {0u, 2u, 1u}) {
    for (const Job& job : jobs) std::ranges::fill(job.output->as<float>(), 0.0f);
    REQUIRE(executor->wait(executor->replay(all[named], Deadline::never()).value(), Deadline::never()));
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      CHECK((values_of(*jobs[i].output) != std::vector<float>{0, 0}) == (i == named));
    }
  }
}

TEST_CASE("recordings: a device tensor is uploaded although one before it is not", "[executor][recording]") {
  const auto device = std::make_shared<SyntheticDevice>();
  const auto executor = ring(2);
  const Job first = add_one(device, {1, 2}), second = add_one(device, {0, 0}), third = add_one(device, {5, 6});
  std::vector<Submission> submissions{first.submission, second.submission, third.submission};
  submissions[0].tensors[1] = on_device(2 * sizeof(float));  // holds nothing before, and nobody reads it
  submissions[1].tensors[0] = on_device(2 * sizeof(float), tensor_of({10, 20}));
  const auto recorded = executor->record(submissions);
  REQUIRE(recorded);
  REQUIRE(executor->wait(executor->replay(*recorded, Deadline::never()).value(), Deadline::never()));
  CHECK(values_of(*second.output) == std::vector<float>{11, 21});
  CHECK(values_of(*third.output) == std::vector<float>{6, 7});
}

TEST_CASE("recordings: inputs are uploaded behind outputs that are poisoned", "[executor][recording]") {
  const auto device = std::make_shared<SyntheticDevice>(GENERATE(Memory::plain, Memory::mapped));
  const auto executor = ring(2);
  const Job first = add_one(device, {1, 2}), second = add_one(device, {5, 6});
  std::vector<Submission> submissions{first.submission, second.submission};
  for (Submission& submission : submissions) submission.upload_outputs = true;
  const auto recorded = executor->record(submissions);
  REQUIRE(recorded);
  REQUIRE(executor->wait(executor->replay(*recorded, Deadline::never()).value(), Deadline::never()));
  CHECK(values_of(*first.output) == std::vector<float>{2, 3});
  CHECK(values_of(*second.output) == std::vector<float>{6, 7});
}

TEST_CASE("recordings: a replay that found no room for a Constant can be made again", "[executor][recording]") {
  const auto device = std::make_shared<SyntheticDevice>();
  const auto executor = ring(2);
  const Job first = two_passes(device, {1, 2}), second = weigh(device, {10, 10}, constant_of({2, 3}));
  const auto recorded = executor->record({first.submission, second.submission});
  REQUIRE(recorded);
  device->refuse_buffers(unavailable("no room"));
  const auto fence = executor->replay(*recorded, Deadline::never());
  REQUIRE(fence);
  const auto refused = executor->wait(*fence, Deadline::never());
  REQUIRE_FALSE(refused);
  CHECK(refused.error().text() == "unavailable: the queue of device synthetic:0: submission 1: tensor w: no room");
  device->refuse_buffers(std::nullopt);
  REQUIRE(executor->wait(executor->replay(*recorded, Deadline::never()).value(), Deadline::never()));
  CHECK(values_of(*first.output) == std::vector<float>{4, 6});
  CHECK(values_of(*second.output) == std::vector<float>{20, 30});
}

TEST_CASE("recordings: device tensors that are never needed at one time share memory", "[executor][recording]") {
  const auto memory = GENERATE(Memory::plain, Memory::mapped, Memory::wrapped);
  const auto device = std::make_shared<SyntheticDevice>(memory);
  const auto executor = ring(2);
  constexpr std::size_t length = 6;
  std::vector<Job> chain;
  for (std::size_t i = 0; i < length; ++i) chain.push_back(add_one(device, {1, 2}));
  std::vector<TensorArgument> between;
  for (std::size_t i = 0; i + 1 < length; ++i) {
    between.push_back(on_device(2 * sizeof(float)));
    chain[i].submission.tensors[1] = between.back();
    chain[i + 1].submission.tensors[0] = between.back();
  }
  std::vector<Submission> submissions;
  for (const Job& job : chain) submissions.push_back(job.submission);
  const auto recorded = executor->record(submissions);
  REQUIRE(recorded);
  CHECK((*recorded)->device_bytes == 2 * 2 * sizeof(float));  // of five tensors, two at a time
  CHECK((*recorded)->live_bytes == 2 * 2 * sizeof(float));
  CHECK(device->buffers_alive(BufferUsage::storage) == 2);
  for (int round = 0; round < 2; ++round) {
    REQUIRE(executor->wait(executor->replay(*recorded, Deadline::never()).value(), Deadline::never()));
    CHECK(values_of(*chain.back().output) == std::vector<float>{7, 8});
    CHECK(device->submitted() == static_cast<std::uint64_t>(round) + 1);
  }
  // One submission after another, each with its time.
  (*recorded)->measures_each = true;
  REQUIRE(executor->wait(executor->replay(*recorded, Deadline::never()).value(), Deadline::never()));
  CHECK((*recorded)->measured.size() == length);
  CHECK(device->submitted() == 2 + length);
  (*recorded)->measures_each = false;
  REQUIRE(executor->wait(executor->replay(*recorded, Deadline::never()).value(), Deadline::never()));
  CHECK((*recorded)->measured.empty());
  CHECK(device->submitted() == 3 + length);
}

TEST_CASE("recordings: device tensors of one and of several submissions are counted", "[executor][recording]") {
  const auto device = std::make_shared<SyntheticDevice>();
  const auto executor = ring(2);
  Job job = add_one(device, {3, 4, 5});
  const auto given = tensor_of({1, 2, 3});
  const auto result = tensor_of({0, 0, 0});
  job.submission.tensors[1] = on_device(3 * sizeof(float), nullptr, result);
  std::uint64_t bytes = 3 * sizeof(float);
  SECTION("an output") {}
  SECTION("an input and an output") {
    job.submission.tensors[0] = on_device(3 * sizeof(float), given);
    bytes *= 2;
  }
  const auto recorded = executor->record({job.submission});
  REQUIRE(recorded);
  CHECK((*recorded)->device_bytes == bytes);
  CHECK((*recorded)->live_bytes == bytes);
  const auto fence = executor->replay(*recorded, Deadline::never());
  REQUIRE(fence);
  REQUIRE(executor->wait(*fence, Deadline::after(std::chrono::seconds(20))));
  CHECK(values_of(*result) == (bytes == 12 ? std::vector<float>{4, 5, 6} : std::vector<float>{2, 3, 4}));
}

TEST_CASE("recordings: a device tensor is filled before and read after a replay", "[executor][recording]") {
  const auto memory = GENERATE(Memory::plain, Memory::mapped, Memory::wrapped);
  const auto device = std::make_shared<SyntheticDevice>(memory);
  const auto executor = ring(2);
  // Two steps exchange two tensors, so the result is in the memory that the input was in.
  Job first = add_one(device, {0, 0});
  Job second = add_one(device, {0, 0});
  const auto given = tensor_of({3, 4});
  const auto result = tensor_of({0, 0});
  const TensorArgument a = on_device(2 * sizeof(float), given, result);
  const TensorArgument b = on_device(2 * sizeof(float));
  first.submission.tensors = {a, b};
  second.submission.tensors = {b, a};
  const auto recorded = executor->record({first.submission, second.submission});
  REQUIRE(recorded);
  for (int round = 0; round < 2; ++round) {
    REQUIRE(executor->wait(executor->replay(*recorded, Deadline::never()).value(), Deadline::never()));
    CHECK(values_of(*result) == std::vector<float>{5, 6});
    CHECK(values_of(*given) == std::vector<float>{3, 4});
  }
}

TEST_CASE("recordings: only a pass that depends on an earlier one waits", "[executor][recording]") {
  const auto device = std::make_shared<SyntheticDevice>();
  const auto executor = ring(2);
  const auto waits = [&](const std::vector<Job>& jobs) {
    std::vector<Submission> submissions;
    for (const Job& job : jobs) submissions.push_back(job.submission);
    const auto recorded = executor->record(submissions);
    REQUIRE(recorded);
    REQUIRE(executor->wait(executor->replay(*recorded, Deadline::never()).value(), Deadline::never()));
    return device->last_waits();
  };
  std::vector<Job> jobs{add_one(device, {1}), add_one(device, {2}), add_one(device, {3})};
  CHECK(waits(jobs) == std::vector<bool>{true, false, false});  // nothing in common
  jobs[1].submission.tensors[0] = jobs[0].submission.tensors[0];
  CHECK(waits(jobs) == std::vector<bool>{true, false, false});  // both read it
  jobs[2].submission.tensors[0] = jobs[0].submission.tensors[1];
  CHECK(waits(jobs) == std::vector<bool>{true, false, true});  // reads what the first writes
  jobs[2].submission.tensors = {TensorArgument{tensor_of({3}), nullptr}, jobs[0].submission.tensors[0]};
  CHECK(waits(jobs) == std::vector<bool>{true, false, true});  // writes what the first reads
  jobs[2].submission.tensors[1] = jobs[1].submission.tensors[1];
  CHECK(waits(jobs) == std::vector<bool>{true, false, true});  // writes what the second writes
  CHECK(waits({two_passes(device, {1}), add_one(device, {5})}) == std::vector<bool>{true, true, false});
}

TEST_CASE("recordings: a device tensor of wrong size or use is refused", "[executor][recording]") {
  const auto device = std::make_shared<SyntheticDevice>();
  const auto executor = ring(2);
  const auto error_of = [&](const TensorArgument& argument) {
    Submission submission = add_one(device, {1}).submission;
    submission.tensors[1] = argument;
    const auto recorded = executor->record({submission});
    REQUIRE_FALSE(recorded);
    CHECK(recorded.error().code == StatusCode::invalid_argument);
    return recorded.error().message;
  };
  CHECK_THAT(error_of(on_device(8)), Catch::Contains("8 bytes given, expected 4"));
  CHECK_THAT(error_of(on_device(4, tensor_of({1, 2}))),
             Catch::Contains("with a host tensor of 8, expected equal sizes"));
  CHECK_THAT(error_of(on_device(4, nullptr, tensor_of({1, 2}))),
             Catch::Contains("with a host tensor of 8, expected equal sizes"));
  TensorArgument both = on_device(4);
  both.host = tensor_of({1});
  CHECK_THAT(error_of(both), Catch::Contains("a DeviceTensor and another argument given, expected only one"));
  Submission alone = add_one(device, {1}).submission;
  alone.tensors[1] = on_device(4);
  CHECK_THAT(executor->submit(alone).error().message, Catch::Contains("DeviceTensors are allowed only in a recording"));
  Submission weighing = weigh(device, {1}, constant_of({2})).submission;
  weighing.tensors[1] = on_device(4);
  CHECK_THAT(executor->record({weighing}).error().message, Catch::Contains("expected a Constant"));
}

TEST_CASE("recordings: what cannot be recorded or replayed is told", "[executor][recording]") {
  const auto device = std::make_shared<SyntheticDevice>();
  const auto other = std::make_shared<SyntheticDevice>(Memory::plain, "other");
  const auto executor = ring(2);
  CHECK(executor->record({}).error().code == StatusCode::invalid_argument);
  const auto mixed = executor->record({add_one(device, {1}).submission, add_one(other, {1}).submission});
  REQUIRE_FALSE(mixed);
  CHECK(mixed.error().code == StatusCode::invalid_argument);
  CHECK_THAT(mixed.error().message,
             Catch::Contains("submission 1") && Catch::Contains("other") && Catch::Contains("synthetic:0"));
  Submission wrong = add_one(device, {1}).submission;
  wrong.tensors.pop_back();
  CHECK_THAT(executor->record({wrong}).error().message, Catch::Contains("1 tensors given, expected 2"));
  CHECK(executor->replay(nullptr, Deadline::never()).error().code == StatusCode::invalid_argument);

  const auto recorded = executor->record({add_one(device, {1}).submission}).value();
  const auto stranger = ring(2);
  CHECK_THAT(stranger->replay(recorded, Deadline::never()).error().message,
             Catch::Contains("belongs to another executor"));
  device->hold();
  const Fence fence = executor->replay(recorded, Deadline::never()).value();
  CHECK_THAT(executor->replay(recorded, Deadline::never()).error().message, Catch::Contains("still in flight"));
  device->release();
  REQUIRE(executor->wait(fence, Deadline::never()));
  CHECK(executor->wait(executor->replay(recorded, Deadline::never()).value(), Deadline::never()));
}

TEST_CASE("cancel: a job that has not reached the device answers cancelled at once, and its slot is free",
          "[executor][cancel]") {
  const auto device = std::make_shared<SyntheticDevice>();
  const auto executor = ring(3);
  device->hold();
  // A packing holds up the upload lane, so that the job behind it is still on its way.
  const auto packings = std::make_shared<std::atomic<int>>(0);
  const Job packed = weigh_packed(device, {1, 1}, constant_of({2, 3}), packings);
  const Fence first = executor->submit(packed.submission).value();
  device->await_submitted(1);
  const Job behind = add_one(device, {1});
  const Fence second = executor->submit(behind.submission).value();
  REQUIRE(executor->cancel(second).ok());
  const auto cancelled = executor->wait(second, Deadline::never());
  REQUIRE_FALSE(cancelled);
  CHECK(cancelled.error().code == StatusCode::cancelled);
  CHECK(executor->cancel(second).code == StatusCode::not_found);
  CHECK_THAT(executor->cancel(second).message, Catch::Contains("the result was already taken"));
  CHECK_THAT(executor->cancel({second.queue, 9}).message, Catch::Contains("was never submitted"));
  device->release();
  REQUIRE(executor->wait(first, Deadline::never()));
  CHECK(values_of(*behind.output) == std::vector<float>{-1});  // it never ran
  CHECK(device->submitted() == 2);
}

TEST_CASE("cancel: whoever has the result of a cancelled job finds its slot free", "[executor][cancel]") {
  const auto device = std::make_shared<SyntheticDevice>();
  const auto executor = ring(2);
  device->hold();
  // A packing holds up the upload lane, so that the job behind it is still on its way.
  const auto packings = std::make_shared<std::atomic<int>>(0);
  const Fence first = executor->submit(weigh_packed(device, {1, 1}, constant_of({2, 3}), packings).submission).value();
  device->await_submitted(1);
  auto sleeper = std::async(std::launch::async, [&] { return executor->wait(first, Deadline::never()).has_value(); });
  Fence second = executor->submit(add_one(device, {1}).submission).value();
  std::atomic<int> looking{0}, taken{0};
  std::string refused;
  // It looks again and again: a thread that sleeps would be woken too late to see a slot that is not free.
  std::thread next([&] {
    for (int i = 1; i <= 2000 && refused.empty(); ++i) {
      Job job = add_one(device, {1});
      looking = i;
      for (auto end = executor->wait(second, Deadline{Clock::now()});
           !end && end.error().code == StatusCode::timeout;) {
        end = executor->wait(second, Deadline{Clock::now()});
      }
      job.submission.deadline = Deadline{Clock::now()};  // a slot that is not free yet would be waited for
      const auto fence = executor->submit(job.submission);
      if (fence) second = *fence;
      if (!fence) refused = "job " + std::to_string(i) + ": " + fence.error().text();
      taken = i;
    }
  });
  Status cancelled;
  for (int i = 1; i <= 2000 && cancelled.ok() && refused.empty(); ++i) {
    while (looking != i) std::this_thread::yield();
    cancelled = executor->cancel(second);
    if (!cancelled.ok()) device->release();  // lest the other thread looks for ever
    while (taken != i) std::this_thread::yield();
  }
  next.join();
  CHECK(cancelled.text() == "ok");
  CHECK(refused == "");
  device->release();
  CHECK(sleeper.get());
}

TEST_CASE("cancel: a job on the device runs to its end", "[executor][cancel]") {
  const auto device = std::make_shared<SyntheticDevice>();
  const auto executor = ring(2);
  device->hold();
  const Job job = add_one(device, {1});
  const Fence fence = executor->submit(job.submission).value();
  device->await_submitted(1);
  Status late;
  do {
    late = executor->cancel(fence);  // the submit thread may not have come back from the device's submit() yet
  } while (late.ok());
  CHECK(late.code == StatusCode::unavailable);
  CHECK_THAT(late.message, Catch::Contains("already on the device"));
  device->release();
  REQUIRE(executor->wait(fence, Deadline::never()));
  CHECK(values_of(*job.output) == std::vector<float>{2});
  CHECK(executor->cancel({9, 1}).code == StatusCode::not_found);
}

TEST_CASE("wait_any: answers whichever is finished, of several queues", "[executor][wait_any]") {
  const auto held = std::make_shared<SyntheticDevice>(Memory::plain, "held");
  const auto free = std::make_shared<SyntheticDevice>(Memory::plain, "free");
  const auto executor = ring(2);
  held->hold();
  const Fence slow = executor->submit(add_one(held, {1}).submission).value();
  const Fence fast = executor->submit(add_one(free, {1}).submission).value();
  const std::vector<Fence> both{slow, fast};
  CHECK(executor->wait_any(both, Deadline::never()).value() == 1);
  CHECK(executor->cancel(fast).code == StatusCode::not_found);
  CHECK_THAT(executor->cancel(fast).message, Catch::Contains("the work has already finished"));
  REQUIRE(executor->wait(fast, {Clock::now()}));
  const auto none = executor->wait_any(both, Deadline::after(short_wait));
  REQUIRE_FALSE(none);
  CHECK(none.error().code == StatusCode::timeout);
  std::thread releaser([&] { held->release(); });
  CHECK(executor->wait_any(both, Deadline::never()).value() == 0);
  releaser.join();
  REQUIRE(executor->wait(slow, {Clock::now()}));
  CHECK(executor->wait_any(both, Deadline::never()).error().code == StatusCode::not_found);
  CHECK(executor->wait_any({}, Deadline::never()).error().code == StatusCode::not_found);
}

TEST_CASE("batches: small jobs that wait together share a submission, and each has its own result",
          "[executor][batch]") {
  const auto device = std::make_shared<SyntheticDevice>();
  const auto executor = ring(8);
  for (int i = 0; i < 3; ++i) {  // it has to turn out that they are small
    REQUIRE(executor->wait(executor->submit(add_one(device, {1}).submission).value(), Deadline::never()));
  }
  std::uint32_t largest = 1;
  for (int round = 0; round < 200 && largest == 1; ++round) {
    const auto packings = std::make_shared<std::atomic<int>>(0);
    // Packing waits for the device, so what is submitted meanwhile waits together.
    device->hold();
    std::vector<Job> jobs{weigh_packed(device, {1, 1}, constant_of({static_cast<float>(round), 3}), packings)};
    for (int i = 0; i < 5; ++i) jobs.push_back(add_one(device, {static_cast<float>(i)}));
    std::vector<Fence> fences;
    for (const Job& job : jobs) fences.push_back(executor->submit(job.submission).value());
    device->release();
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      const auto measured = executor->wait(fences[i], Deadline::never());
      REQUIRE(measured);
      largest = std::max(largest, measured->batch);
      if (i > 0) CHECK(values_of(*jobs[i].output) == std::vector<float>{static_cast<float>(i)});
    }
  }
  CHECK(largest > 1);
  CHECK(largest <= 8);
}

TEST_CASE("trace: every stage of every job is told, one after the other in its slot", "[executor][trace]") {
  const auto device = std::make_shared<SyntheticDevice>();
  Spans spans;
  constexpr std::size_t jobs = 20;
  {
    ExecutorContext context;
    context.config.in_flight = 2;
    context.trace = &spans;
    const auto executor = ring(context);
    std::vector<Fence> fences;
    for (std::size_t i = 0; i < jobs; ++i) {
      fences.push_back(executor->submit(add_one(device, {1}).submission).value());
    }
    for (const Fence fence : fences) REQUIRE(executor->wait(fence, Deadline::never()));
  }
  std::map<std::uint64_t, std::map<Stage, StageSpan>> by_job;
  std::map<std::uint32_t, std::vector<StageSpan>> slots;
  for (const auto& told : spans.told()) {
    CHECK(told.device == "synthetic:0");
    CHECK(told.label == "add_one");
    CHECK(told.span.begin_ns <= told.span.end_ns);
    by_job[told.span.fence][told.span.stage] = told.span;
    if (told.span.stage == Stage::job) slots[told.span.slot].push_back(told.span);
  }
  CHECK(by_job.size() == jobs);
  CHECK(slots.size() <= 2);
  for (const auto& [fence, stages] : by_job) {
    INFO("job " << fence);
    CHECK(stages.size() == 7);
    const StageSpan& whole = stages.at(Stage::job);
    std::uint64_t last = whole.begin_ns;
    for (const Stage stage :
         {Stage::queue, Stage::build, Stage::upload, Stage::submit, Stage::device, Stage::readback}) {
      const StageSpan& span = stages.at(stage);
      CHECK(span.begin_ns >= last);
      CHECK(span.end_ns <= whole.end_ns);
      CHECK(span.slot == whole.slot);
      last = span.end_ns;
    }
  }
  for (auto& [number, spans_of] : slots) {
    std::sort(spans_of.begin(), spans_of.end(), [](const auto& a, const auto& b) { return a.begin_ns < b.begin_ns; });
    for (std::size_t i = 1; i < spans_of.size(); ++i) CHECK(spans_of[i].begin_ns >= spans_of[i - 1].end_ns);
  }
}

TEST_CASE("recordings: a device that makes no buffer is an error of record()", "[executor][recording]") {
  const auto device = std::make_shared<SyntheticDevice>();
  const auto executor = ring(2);
  const Job job = two_passes(device, {1, 2});
  constexpr std::size_t buffers = 3;  // input, output and scratch
  for (std::size_t made = 0; made < buffers; ++made) {
    CAPTURE(made);
    device->refuse_buffers(unavailable("no memory left"), made);
    const auto refused = executor->record({job.submission});
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == StatusCode::unavailable);
    CHECK_THAT(refused.error().message, Catch::StartsWith("recording: ") && Catch::Contains("no memory left"));
  }
  device->refuse_buffers(unavailable("no memory left"), buffers);
  const auto recorded = executor->record({job.submission});
  REQUIRE(recorded);
  REQUIRE(executor->wait(executor->replay(*recorded, Deadline::never()).value(), Deadline::never()));
  CHECK(values_of(*job.output) == std::vector<float>{4, 6});
}
