#include "core/executor/jobs.hpp"

#include <catch2/catch.hpp>

#include <thread>

using namespace kiln;
using namespace kiln::test;

TEST_CASE("executor: the destructor waits for what is in flight, queued jobs too", "[executor]") {
  const auto device = std::make_shared<SyntheticDevice>();
  std::vector<Job> jobs;
  std::thread releaser;
  {
    const auto executor = ring(4);
    device->hold();
    for (int i = 0; i < 4; ++i) {
      jobs.push_back(add_one(device, {static_cast<float>(i)}));
      REQUIRE(executor->submit(jobs.back().submission));
    }
    releaser = std::thread([&] { device->release(); });
  }
  releaser.join();
  for (int i = 0; i < 4; ++i) {
    CHECK(values_of(*jobs[static_cast<std::size_t>(i)].output) == std::vector<float>{static_cast<float>(i) + 1});
  }
  for (const auto usage : {BufferUsage::upload, BufferUsage::readback, BufferUsage::storage, BufferUsage::constant}) {
    CHECK(device->buffers_alive(usage) == 0);
  }
  CHECK(device.use_count() == 1 + 4);  // ours and the jobs': the executor let go
}

TEST_CASE("executor: work that never ends keeps its memory, its programs and its device", "[executor]") {
  const auto memory = GENERATE(Memory::plain, Memory::wrapped);
  auto device = std::make_shared<SyntheticDevice>(memory);
  SyntheticDevice& hung = *device;  // stays: that is what this test is about
  Job job = add_one(device, {1});
  const std::weak_ptr<HostTensor> input = job.submission.tensors[0].host;
  const std::weak_ptr<HostTensor> output = job.output;
  const std::weak_ptr<SyntheticDevice> watched = device;
  auto program = std::make_shared<const SyntheticProgram>([](const Memories& m) { m[1][0] = 9; });
  const std::weak_ptr<const SyntheticProgram> watched_program = program;
  job.submission.programs = {ProgramHandle(std::move(program))};
  hung.hold();
  {
    const auto executor = ring(2, std::chrono::milliseconds(30));
    REQUIRE(executor->submit(std::move(job.submission)));
    hung.await_submitted(1);
    job = {};
    device.reset();
  }  // answers after the timeout
  CHECK_FALSE(input.expired());
  CHECK_FALSE(output.expired());
  CHECK_FALSE(watched.expired());
  CHECK_FALSE(watched_program.expired());
  hung.release();  // the device wakes up after all and writes: into memory that is still there
  hung.await_idle();
  if (memory == Memory::wrapped) CHECK(values_of(*output.lock()) == std::vector<float>{9});
}
