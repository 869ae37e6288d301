#include "core/executor/jobs.hpp"

#include "executor/buffers.hpp"
#include "executor/slot_pipeline.hpp"

#include <catch2/catch.hpp>

using namespace kiln;
using namespace kiln::test;

namespace {

void run(Executor& executor, const Job& job) {
  const auto measured = executor.wait(executor.submit(job.submission).value(), Deadline::never());
  REQUIRE(measured);
}

}  // namespace

TEST_CASE("executor: a Constant goes to the device once, by content", "[executor]") {
  const auto memory = GENERATE(Memory::plain, Memory::mapped, Memory::wrapped);
  const auto device = std::make_shared<SyntheticDevice>(memory);
  const auto executor = ring(3);
  const auto weights = constant_of({2, 3});
  const auto same = constant_of({2, 3});
  const auto other = constant_of({5, 7});
  for (int i = 0; i < 5; ++i) {
    const Job job = weigh(device, {1, 10}, weights);
    run(*executor, job);
    CHECK(values_of(*job.output) == std::vector<float>{2, 30});
  }
  CHECK(device->buffers_made(BufferUsage::constant) == 1);
  run(*executor, weigh(device, {1, 10}, same));
  CHECK(device->buffers_made(BufferUsage::constant) == 1);
  const Job job = weigh(device, {1, 10}, other);
  run(*executor, job);
  CHECK(values_of(*job.output) == std::vector<float>{5, 70});
  CHECK(device->buffers_made(BufferUsage::constant) == 2);
}

TEST_CASE("executor: a plan's own constants are bound, in a recording too", "[executor]") {
  const auto memory = GENERATE(Memory::plain, Memory::mapped, Memory::wrapped);
  const auto device = std::make_shared<SyntheticDevice>(memory);
  const auto executor = ring(2);
  for (int i = 0; i < 3; ++i) {
    const Job job = add_numbers(device, {1, 10}, constant_of({2, 3}));  // plans of their own, numbers alike
    run(*executor, job);
    CHECK(values_of(*job.output) == std::vector<float>{3, 13});
  }
  const Job recorded = add_numbers(device, {4, 5}, constant_of({7, 8}));
  {
    const auto recording = executor->record({recorded.submission});
    REQUIRE(recording);
    const auto fence = executor->replay(*recording, Deadline::never());
    REQUIRE(fence);
    REQUIRE(executor->wait(*fence, Deadline::never()));
    CHECK(values_of(*recorded.output) == std::vector<float>{11, 13});
  }
}

TEST_CASE("executor: a Constant leaves the device when its last holder has gone", "[executor]") {
  const auto memory = GENERATE(Memory::plain, Memory::wrapped);
  const auto device = std::make_shared<SyntheticDevice>(memory);
  const auto executor = ring(2);
  auto weights = constant_of({2, 3});
  auto twin = constant_of({2, 3});
  const auto kept = constant_of({4, 4});
  run(*executor, weigh(device, {1, 1}, weights));
  run(*executor, weigh(device, {1, 1}, twin));
  run(*executor, weigh(device, {1, 1}, kept));
  device->await_buffers(BufferUsage::constant, 2);
  weights.reset();
  const Job job = weigh(device, {1, 1}, twin);
  run(*executor, job);  // the twin still holds the content, also where the buffer wrapped the first one's memory
  CHECK(values_of(*job.output) == std::vector<float>{2, 3});
  CHECK(device->buffers_made(BufferUsage::constant) == 2);
}

TEST_CASE("executor: an idle queue lets Constants go by itself", "[executor]") {
  const auto device = std::make_shared<SyntheticDevice>();
  const auto executor = ring(2);
  {
    const auto packings = std::make_shared<std::atomic<int>>(0);
    const auto weights = constant_of({2, 3});
    run(*executor, weigh_packed(device, {1, 1}, weights, packings));
    CHECK(device->buffers_alive(BufferUsage::constant) == 1);
    CHECK(device->buffers_alive(BufferUsage::storage) == 1);
  }
  device->await_buffers(BufferUsage::constant, 0);
  device->await_buffers(BufferUsage::storage, 0);  // the packed form went with it
}

TEST_CASE("executor: a Constant is packed once for each content, layout and way of packing", "[executor]") {
  const auto device = std::make_shared<SyntheticDevice>();
  WorkCounters counters;
  const auto executor = ring(3, std::chrono::seconds(10), &counters);
  const auto packings = std::make_shared<std::atomic<int>>(0);
  const auto weights = constant_of({2, 3, 4});

  const Job first = weigh_packed(device, {1, 10, 100}, weights, packings);
  const auto measured = executor->wait(executor->submit(first.submission).value(), Deadline::never());
  REQUIRE(measured);
  CHECK(measured->prepared);
  CHECK(measured->build_ns > 0);
  CHECK(values_of(*first.output) == std::vector<float>{2, 30, 400});

  for (int i = 0; i < 4; ++i) {
    // A plan of its own each time: what counts is what it says.
    const Job job = weigh_packed(device, {1, 1, static_cast<float>(i)}, weights, packings);
    const auto again = executor->wait(executor->submit(job.submission).value(), Deadline::never());
    REQUIRE(again);
    CHECK_FALSE(again->prepared);
    CHECK(values_of(*job.output) == std::vector<float>{2, 3, 4 * static_cast<float>(i)});
  }
  CHECK(*packings == 1);
  CHECK(counters.prepared == 1);

  run(*executor, weigh_packed(device, {1, 1, 1}, weights, packings, "another layout"));
  CHECK(*packings == 2);
  run(*executor, weigh_packed(device, {1, 1, 1}, weights, packings, "reversed", "another packer"));
  CHECK(*packings == 3);
  run(*executor, weigh_packed(device, {1, 1, 1}, constant_of({9, 9, 9}), packings));
  CHECK(*packings == 4);
  CHECK(counters.prepared == 4);
}

TEST_CASE("executor: a packing is told from another by each thing that it is made of", "[executor]") {
  const auto device = std::make_shared<SyntheticDevice>();
  const auto executor = ring(2);
  const auto packings = std::make_shared<std::atomic<int>>(0);
  const auto weights = constant_of({2, 3});
  // The packing adds a number of the plan's own to the reversed weights.
  const auto with_numbers = [&](const std::vector<float>& numbers, const auto& change) {
    Job job = weigh_packed(device, {1, 10}, weights, packings);
    KernelPlan plan = *job.submission.plan;
    plan.constants = {constant_of(numbers), constant_of({100, 200})};
    plan.prepare[0].bindings.push_back({BindingSource::constant, 0});
    plan.prepare[0].source.bindings.push_back(Access::read);
    change(plan);
    job.submission.plan = std::make_shared<const KernelPlan>(std::move(plan));
    job.submission.prepare_programs = {program_of([packings](const Memories& m) {
      ++*packings;
      for (std::size_t i = 0; i < 2; ++i) m[1][i] = m[0][1 - i] + m[2][i];
    })};
    run(*executor, job);
    return values_of(*job.output);
  };
  const auto nothing = [](KernelPlan&) {};
  CHECK(with_numbers({0, 0}, nothing) == std::vector<float>{2, 30});
  CHECK(with_numbers({5, 7}, nothing) == std::vector<float>{9, 80});
  CHECK(*packings == 2);
  CHECK(with_numbers({0, 0}, nothing) == std::vector<float>{2, 30});
  CHECK(with_numbers({5, 7}, nothing) == std::vector<float>{9, 80});
  CHECK(*packings == 2);
  CHECK(with_numbers({5, 7}, [](KernelPlan& plan) { plan.prepare[0].bindings[2].index = 1; }) ==
        std::vector<float>{202, 1030});
  CHECK(*packings == 3);
  int expected = 3;
  const auto anew = [&](const auto& change) {
    CHECK(with_numbers({5, 7}, change) == std::vector<float>{9, 80});
    CHECK(*packings == ++expected);
    CHECK(with_numbers({5, 7}, change) == std::vector<float>{9, 80});
    CHECK(*packings == expected);
  };
  anew([](KernelPlan& plan) { plan.prepared[0].layout += "2"; });
  anew([](KernelPlan& plan) { plan.prepared[0].bytes += sizeof(float); });
  anew([](KernelPlan& plan) { plan.prepare[0].source.text += " "; });
  anew([](KernelPlan& plan) { plan.prepare[0].source.entry = "other"; });
  anew([](KernelPlan& plan) { plan.prepare[0].source.dialect = Dialect::opencl_c; });
  anew([](KernelPlan& plan) { plan.prepare[0].source.constants = {{"N", "1"}}; });
  anew([](KernelPlan& plan) { plan.prepare[0].source.constants = {{"N", "2"}}; });
  anew([](KernelPlan& plan) { plan.prepare[0].source.workgroup = {64, 1, 1}; });
  anew([](KernelPlan& plan) { plan.prepare[0].grid = {2, 1, 1}; });
}

TEST_CASE("executor: a Constant stays while any of its holders lives, whichever came first", "[executor]") {
  SyntheticDevice device;
  executor::ConstantStore store(device);
  for (const bool first_goes : {true, false}) {
    auto first = constant_of({2, 3});
    auto second = constant_of({2, 3});
    Buffer* const buffer = store.resident(first).value();
    CHECK(store.resident(second).value() == buffer);
    CHECK(store.resident(first).value() == buffer);
    (first_goes ? first : second).reset();
    store.sweep();
    REQUIRE_FALSE(store.empty());
    CHECK(device.buffers_alive(BufferUsage::constant) == 1);
    CHECK(store.resident(first_goes ? second : first).value() == buffer);
    const auto third = constant_of({2, 3});  // takes the place of the one that has gone
    CHECK(store.resident(third).value() == buffer);
    (first_goes ? second : first).reset();
    store.sweep();
    CHECK_FALSE(store.empty());
  }
  store.sweep();
  CHECK(store.empty());
  CHECK(device.buffers_alive(BufferUsage::constant) == 0);
}

TEST_CASE("executor: a pipeline holds Constants until their owners or the device are released", "[executor]") {
  using executor::Lane;
  const auto device = std::make_shared<SyntheticDevice>();
  executor::SlotPipeline pipeline(device, {});
  CHECK_FALSE(pipeline.sweep());  // it has none yet
  const auto serve = [&](const Job& job) {
    executor::Wake wake;
    executor::Slot* const slot = pipeline.take_free();
    REQUIRE(slot != nullptr);
    const std::uint64_t value = pipeline.enter(*slot, job.submission, Deadline::never(), now_ns(), wake);
    for (const Lane lane : {Lane::upload, Lane::dispatch, Lane::retire}) {
      executor::Claim claim = pipeline.begin(lane, std::nullopt);
      REQUIRE_FALSE(claim.seats.empty());
      if (lane == Lane::upload) pipeline.upload(claim);
      if (lane == Lane::dispatch) pipeline.dispatch(claim);
      if (lane == Lane::retire) CHECK(pipeline.retire(claim, Deadline::after(std::chrono::seconds(20))));
      pipeline.end(claim);
    }
    REQUIRE(pipeline.timeline().wait(value, {Clock::now()}, {}));
    CHECK(values_of(*job.output) == std::vector<float>{2, 30});
  };
  auto weights = constant_of({2, 3});
  serve(weigh(device, {1, 10}, weights));
  CHECK(pipeline.sweep());
  CHECK(device->buffers_alive(BufferUsage::constant) == 1);
  weights.reset();
  CHECK_FALSE(pipeline.sweep());
  CHECK(device->buffers_alive(BufferUsage::constant) == 0);
  weights = constant_of({2, 3});
  serve(weigh(device, {1, 10}, weights));
  CHECK(pipeline.sweep());
  CHECK(pipeline.device().get() == device.get());
  REQUIRE(pipeline.idle());
  pipeline.let_go();
  CHECK_FALSE(pipeline.device());
  CHECK(device->buffers_alive(BufferUsage::constant) == 0);
  CHECK(device->buffers_alive(BufferUsage::upload) == 0);
  CHECK(device->buffers_alive(BufferUsage::readback) == 0);
  CHECK_FALSE(pipeline.sweep());
}

TEST_CASE("executor: an idle buffer serves the same size and usage alone", "[executor]") {
  SyntheticDevice device;
  executor::BufferPool pool;
  Buffer* const storage = pool.take(device, BufferUsage::storage, 64).value();
  CHECK(pool.take(device, BufferUsage::storage, 64).value() != storage);  // taken
  pool.recycle();
  Buffer* const uniform = pool.take(device, BufferUsage::constant, 64).value();
  CHECK(uniform != storage);
  CHECK(device.buffers_made(BufferUsage::constant) == 1);
  CHECK(pool.take(device, BufferUsage::storage, 65).value() != storage);
  CHECK(device.buffers_made(BufferUsage::storage) == 3);
  CHECK(pool.take(device, BufferUsage::storage, 64));
  CHECK(pool.take(device, BufferUsage::storage, 64));
  CHECK(device.buffers_made(BufferUsage::storage) == 3);
  CHECK(pool.take(device, BufferUsage::storage, 64));
  CHECK(device.buffers_made(BufferUsage::storage) == 4);
  pool.clear();
  CHECK(device.buffers_alive(BufferUsage::storage) == 0);
  CHECK(device.buffers_alive(BufferUsage::constant) == 0);
}

TEST_CASE("executor: a packing that failed is not kept", "[executor]") {
  const auto device = std::make_shared<SyntheticDevice>();
  WorkCounters counters;
  const auto executor = ring(2, std::chrono::seconds(10), &counters);
  const auto packings = std::make_shared<std::atomic<int>>(0);
  const auto weights = constant_of({2, 3});
  device->fail(1, internal_error("packing faulted"));
  const Job job = weigh_packed(device, {1, 1}, weights, packings);
  const auto failed = executor->wait(executor->submit(job.submission).value(), Deadline::never());
  REQUIRE_FALSE(failed);
  CHECK_THAT(failed.error().message, Catch::Contains("packed constant reversed") && Catch::Contains("packing faulted"));
  CHECK(counters.prepared == 0);
  run(*executor, job);
  CHECK(*packings == 2);
  CHECK(values_of(*job.output) == std::vector<float>{2, 3});
}
