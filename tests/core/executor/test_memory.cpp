#include "core/executor/jobs.hpp"

#include <catch2/catch.hpp>

using namespace kiln;
using namespace kiln::test;

TEST_CASE("executor: programs are pinned until the fence, and not longer", "[executor]") {
  const auto device = std::make_shared<SyntheticDevice>();
  const auto executor = ring(2);
  device->hold();
  Job job = add_one(device, {1});
  std::shared_ptr<const SyntheticProgram> program =
      std::make_shared<const SyntheticProgram>([](const Memories& m) { m[1][0] = 7; });
  const std::weak_ptr<const SyntheticProgram> watched = program;
  job.submission.programs = {ProgramHandle(std::move(program))};
  const Fence fence = executor->submit(std::move(job.submission)).value();
  device->await_submitted(1);
  CHECK_FALSE(watched.expired());
  CHECK(executor->wait(fence, Deadline::after(std::chrono::milliseconds(5))).error().code == StatusCode::timeout);
  CHECK_FALSE(watched.expired());
  device->release();
  REQUIRE(executor->wait(fence, Deadline::never()));
  CHECK(watched.expired());
  CHECK(values_of(*job.output) == std::vector<float>{7});
}

TEST_CASE("executor: tensors live as long as the work, also when everybody else let go", "[executor]") {
  const auto memory = GENERATE(Memory::plain, Memory::mapped, Memory::wrapped);
  const auto device = std::make_shared<SyntheticDevice>(memory);
  const auto executor = ring(2);
  device->hold();
  Job job = add_one(device, {1});
  const std::weak_ptr<HostTensor> input = job.submission.tensors[0].host;
  const std::weak_ptr<HostTensor> output = job.output;
  job.submission.deadline = Deadline::after(std::chrono::milliseconds(5));
  const Fence fence = executor->submit(std::move(job.submission)).value();
  job = {};
  CHECK(executor->wait(fence, Deadline::never()).error().code == StatusCode::timeout);
  CHECK_FALSE(input.expired());
  CHECK_FALSE(output.expired());
  device->release();  // the device writes now: the address sanitizer watches
  REQUIRE(executor->wait(fence, Deadline::never()));
  CHECK(input.expired());
  CHECK(output.expired());
}

TEST_CASE("executor: a repeated job makes no new buffers", "[executor]") {
  const auto device = std::make_shared<SyntheticDevice>();
  const auto executor = ring(2);
  for (int i = 0; i < 50; ++i) {
    Job job = two_passes(device, {1, 2, static_cast<float>(i)});
    REQUIRE(executor->wait(executor->submit(job.submission).value(), Deadline::never()));
  }
  CHECK(device->buffers_made(BufferUsage::upload) <= 2);
  CHECK(device->buffers_made(BufferUsage::readback) <= 2);
  CHECK(device->buffers_made(BufferUsage::storage) <= 2);
}

TEST_CASE("executor: a tensor's buffer has its very size, and idle ones are bounded", "[executor]") {
  const auto device = std::make_shared<SyntheticDevice>();
  const auto executor = ring(1);
  for (std::size_t n = 1; n <= 40; ++n) {
    Job job = add_one(device, std::vector<float>(n, 1));
    job.submission.programs = {
        program_of([n](const Memories& m) { m[1][0] = m[0].size() == n && m[1].size() == n ? 1 : 0; })};
    REQUIRE(executor->wait(executor->submit(job.submission).value(), Deadline::never()));
    CHECK(values_of(*job.output)[0] == 1);
  }
  CHECK(device->buffers_alive(BufferUsage::upload) + device->buffers_alive(BufferUsage::readback) <= 18);
}

TEST_CASE("executor: host memory is wrapped where the device can, and copied nowhere else", "[executor]") {
  const auto device = std::make_shared<SyntheticDevice>(Memory::wrapped);
  const auto executor = ring(1);
  Job job = add_one(device, {1, 2});
  auto seen = std::make_shared<std::vector<const float*>>();
  job.submission.programs = {program_of([seen](const Memories& m) {
    for (const auto& memory : m) seen->push_back(memory.data());
  })};
  const auto input = job.submission.tensors[0].host;
  REQUIRE(executor->wait(executor->submit(job.submission).value(), Deadline::never()));
  REQUIRE(seen->size() == 2);
  CHECK((*seen)[0] == input->as<float>().data());
  CHECK((*seen)[1] == job.output->as<float>().data());
  device->await_buffers(BufferUsage::upload, 0);  // wrappers die with the job
  device->await_buffers(BufferUsage::readback, 0);
}

TEST_CASE("executor: a poison in the output reaches the device when asked for", "[executor]") {
  const auto memory = GENERATE(Memory::plain, Memory::mapped, Memory::wrapped);
  const auto device = std::make_shared<SyntheticDevice>(memory);
  const auto executor = ring(1);
  // Leaves the second half unwritten, which a buffer used before would hide.
  Job job = add_one(device, {1, 2});
  REQUIRE(executor->wait(executor->submit(job.submission).value(), Deadline::never()));
  job.submission.programs = {program_of([](const Memories& m) { m[1][0] = 5; })};
  job.submission.upload_outputs = true;
  job.output->as<float>()[0] = -99;
  job.output->as<float>()[1] = -99;
  REQUIRE(executor->wait(executor->submit(job.submission).value(), Deadline::never()));
  CHECK(values_of(*job.output) == std::vector<float>{5, -99});
}
