// What a submission and a recording bind, launch and copy: the buffers behind tensors, the memory that tensors share.
#include "core/executor/jobs.hpp"

#include "executor/work.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace kiln;
using namespace kiln::test;

namespace {

// y[i] = x[i] + 1 over as many as both have. Sizes are in floats.
Submission step(const std::shared_ptr<Device>& device, const TensorArgument& x, std::size_t from,
                const TensorArgument& y, std::size_t to) {
  Submission submission = add_one(device, {1}).submission;
  KernelPlan plan = *submission.plan;
  plan.tensors[0].bytes = from * sizeof(float);
  plan.tensors[1].bytes = to * sizeof(float);
  submission.plan = std::make_shared<const KernelPlan>(std::move(plan));
  submission.programs = {program_of([](const Memories& m) {
    for (std::size_t i = 0; i < std::min(m[0].size(), m[1].size()); ++i) m[1][i] = m[0][i] + 1;
  })};
  submission.tensors = {x, y};
  return submission;
}

TensorArgument of_host(std::size_t floats, float value = 0) {
  return {tensor_of(std::vector<float>(floats, value)), nullptr};
}

TensorArgument of_device(std::size_t floats, std::shared_ptr<const HostTensor> before = nullptr,
                         std::shared_ptr<HostTensor> after = nullptr) {
  return {
      nullptr, nullptr,
      std::make_shared<const DeviceTensor>(DeviceTensor{floats * sizeof(float), std::move(before), std::move(after)})};
}

using Parts = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

}  // namespace

TEST_CASE("work: each kind of binding has its own buffer", "[executor]") {
  SyntheticDevice device;
  executor::BufferPool pool;
  const auto take = [&] { return pool.take(device, BufferUsage::storage, 4).value(); };
  executor::BoundPlan bound;
  bound.tensors = {take(), take()};
  bound.scratch = {take(), take()};
  bound.prepared = {take(), take()};
  bound.constants = {take(), take()};
  for (const std::uint32_t i : {0u, 1u}) {
    CHECK(bound.of({BindingSource::tensor, i}) == bound.tensors[i]);
    CHECK(bound.of({BindingSource::scratch, i}) == bound.scratch[i]);
    CHECK(bound.of({BindingSource::prepared, i}) == bound.prepared[i]);
    CHECK(bound.of({BindingSource::constant, i}) == bound.constants[i]);
    CHECK(bound.of({BindingSource::invalid, i}) == nullptr);
  }
  bound.clear();
  CHECK(bound.tensors.size() + bound.scratch.size() + bound.prepared.size() + bound.constants.size() == 0);
}

TEST_CASE("work: each pass is launched with its part of the bindings, its grid and its sources", "[executor]") {
  const auto device = std::make_shared<SyntheticDevice>();
  executor::BufferPool pool;
  Submission submission = two_passes(device, {1, 2}).submission;
  KernelPlan plan = *submission.plan;
  plan.passes[0].grid = {2, 3, 4};
  plan.passes[0].bindings.push_back({BindingSource::tensor, 1});
  plan.passes[1].indirect = IndirectGrid{1, 8};
  submission.plan = std::make_shared<const KernelPlan>(plan);
  executor::BoundPlan bound;
  for (int i = 0; i < 2; ++i) bound.tensors.push_back(pool.take(*device, BufferUsage::storage, 8).value());
  bound.scratch = {pool.take(*device, BufferUsage::storage, 8).value()};
  std::vector<Buffer*> bindings;
  executor::append_bindings(plan.passes, bound, bindings);
  CHECK(bindings ==
        std::vector<Buffer*>{bound.tensors[0], bound.scratch[0], bound.tensors[1], bound.scratch[0], bound.tensors[1]});
  for (const bool has_sources : {false, true}) {
    if (has_sources) submission.sources = {{{.binding = 7}}, {{.binding = 8}, {.binding = 9}}};
    std::vector<PassLaunch> launches;
    std::span<Buffer* const> rest = bindings;
    executor::append_launches(submission, rest, launches);
    CHECK(rest.empty());
    REQUIRE(launches.size() == 2);
    CHECK(launches[0].program == submission.programs[0].get());
    CHECK(launches[1].program == submission.programs[1].get());
    CHECK(std::ranges::equal(launches[0].bindings, std::span(bindings).first(3)));
    CHECK(std::ranges::equal(launches[1].bindings, std::span(bindings).last(2)));
    CHECK(launches[0].grid == std::array<std::uint32_t, 3>{2, 3, 4});
    CHECK(launches[1].grid == std::array<std::uint32_t, 3>{1, 1, 1});
    CHECK_FALSE(launches[0].indirect);
    CHECK(launches[1].indirect == IndirectGrid{1, 8});
    REQUIRE(launches[0].sources.size() == (has_sources ? 1 : 0));
    REQUIRE(launches[1].sources.size() == (has_sources ? 2 : 0));
    if (has_sources) CHECK(launches[1].sources[1].binding == 9);
  }
}

TEST_CASE("work: copies go through what is mapped, or by the buffer", "[executor]") {
  SyntheticDevice device(GENERATE(Memory::plain, Memory::mapped));
  executor::BufferPool pool;
  Buffer& buffer = *pool.take(device, BufferUsage::upload, 8).value();
  const std::array<std::byte, 8> from{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4},
                                      std::byte{5}, std::byte{6}, std::byte{7}, std::byte{8}};
  std::array<std::byte, 8> to{};
  CHECK(executor::copy_in(buffer, from).ok());
  CHECK(executor::copy_in(buffer, {}).ok());
  CHECK(executor::copy_out(buffer, std::span(to).first(3)).ok());
  CHECK(to == std::array<std::byte, 8>{std::byte{1}, std::byte{2}, std::byte{3}});
  CHECK(executor::copy_out(buffer, {}).ok());
  CHECK(executor::copy_out(buffer, to).ok());
  CHECK(to == from);
  // More than the buffer has is its own error, never a copy beyond its end.
  const std::array<std::byte, 9> more{};
  std::array<std::byte, 9> room{};
  CHECK(executor::copy_in(buffer, more).code == StatusCode::invalid_argument);
  CHECK(executor::copy_out(buffer, room).code == StatusCode::invalid_argument);
}

TEST_CASE("work: a slot keeps sixteen idle buffers besides those of its last job, the latest", "[executor]") {
  SyntheticDevice device;
  executor::BufferPool pool;
  for (std::uint64_t n = 1; n <= 20; ++n) {
    REQUIRE(pool.take(device, BufferUsage::storage, n));
    pool.recycle();
    CHECK(device.buffers_alive(BufferUsage::storage) == std::min<std::uint64_t>(n, 17));
  }
  for (std::uint64_t n = 4; n <= 20; ++n) REQUIRE(pool.take(device, BufferUsage::storage, n));
  CHECK(device.buffers_made(BufferUsage::storage) == 20);
  REQUIRE(pool.take(device, BufferUsage::storage, 3));
  CHECK(device.buffers_made(BufferUsage::storage) == 21);
  pool.recycle();  // all are of the last job
  CHECK(device.buffers_alive(BufferUsage::storage) == 18);
}

TEST_CASE("work: a slot keeps 64 MiB of idle buffers, exactly", "[executor]") {
  SyntheticDevice device;
  executor::BufferPool pool;
  const std::uint64_t bytes = 32 << 20;
  const BufferUsage usages[] = {BufferUsage::storage, BufferUsage::upload, BufferUsage::readback,
                                BufferUsage::constant};
  for (const BufferUsage usage : usages) {
    CHECK(device.buffers_alive(BufferUsage::storage) == device.buffers_made(BufferUsage::storage));
    REQUIRE(pool.take(device, usage, bytes));
    pool.recycle();
  }
  CHECK(device.buffers_alive(BufferUsage::storage) == 0);  // the oldest of three idle ones
  for (const BufferUsage usage : std::span(usages).subspan(1)) CHECK(device.buffers_alive(usage) == 1);
}

TEST_CASE("recordings: tensors of different sizes share blocks where the device can, each in the smallest that is free",
          "[executor][recording]") {
  const bool shares = GENERATE(false, true);
  const auto device = std::make_shared<SyntheticDevice>();
  if (shares) device->share_buffers();
  const TensorArgument a = of_device(16), b = of_device(8), c = of_device(4), d = of_device(2);
  const TensorArgument x = of_host(16, 1), y = of_host(2);
  // By hand: 64 bytes from 0 to 1, 32 from 1 to 2, 16 from 2 to 3 and 8 from 4 to 5. The third goes where the first
  // was; the fourth fits both blocks.
  const std::vector<Submission> submissions{step(device, x, 16, a, 16), step(device, a, 16, b, 8),
                                            step(device, b, 8, c, 4),   step(device, c, 4, y, 2),
                                            step(device, x, 16, d, 2),  step(device, d, 2, y, 2)};
  auto made = executor::RecordedWork::create(submissions);
  REQUIRE(made);
  const auto& work = *made;
  CHECK(work->live_bytes == 96);
  CHECK(work->device_bytes == (shares ? 96 : 120));
  CHECK(device->parts_made() == (shares ? Parts{{64, 16}, {32, 8}} : Parts{}));
  CHECK(work->upload_bytes(*device) == 64);
  CHECK(work->readback_bytes(*device) == 8);
  CHECK(work->jobs() == 6);
  CHECK(work->variant() == "recording of 6");
  const auto executor = ring(1);
  const auto recorded = executor->record(submissions);
  REQUIRE(recorded);
  for (int round = 0; round < 2; ++round) {
    y.host->as<float>()[0] = y.host->as<float>()[1] = 0;
    REQUIRE(executor->wait(executor->replay(*recorded, Deadline::never()).value(), Deadline::never()));
    CHECK(values_of(*y.host) == std::vector<float>{3, 3});  // of the last
    CHECK(values_of(*x.host) == std::vector<float>(16, 1));
  }
  // Each reads what the one before wrote, but the fifth: what read its block is behind a barrier.
  CHECK(device->last_waits() == std::vector<bool>{true, true, true, true, false, true});
}

TEST_CASE("recordings: a pass is given as much of a shared block as its tensor has", "[executor][recording]") {
  const auto device = std::make_shared<SyntheticDevice>();
  device->share_buffers();
  const TensorArgument a = of_device(16), b = of_device(8);
  const TensorArgument x = of_host(16, 1), y = of_host(16), z = of_host(8);
  std::vector<Submission> submissions{step(device, x, 16, a, 16), step(device, a, 16, y, 16), step(device, x, 16, b, 8),
                                      step(device, b, 8, z, 8)};
  const auto sizes = std::make_shared<std::vector<std::size_t>>();  // in floats
  for (Submission& submission : submissions) {
    submission.programs = {program_of([sizes](const Memories& m) {
      for (const std::span<float> memory : m) sizes->push_back(memory.size());
    })};
  }
  const auto executor = ring(1);
  const auto recorded = executor->record(submissions);
  REQUIRE(recorded);
  REQUIRE(executor->wait(executor->replay(*recorded, Deadline::never()).value(), Deadline::never()));
  CHECK(*sizes == std::vector<std::size_t>{16, 16, 16, 16, 16, 8, 8, 8});
}

TEST_CASE("recordings: a pass that writes a part of a block waits for who reads the block", "[executor][recording]") {
  const auto device = std::make_shared<SyntheticDevice>();
  device->share_buffers();
  const TensorArgument a = of_device(16), b = of_device(8);
  const TensorArgument x = of_host(16, 1), y = of_host(16), z = of_host(8);
  const auto executor = ring(1);
  const auto recorded = executor->record(
      {step(device, x, 16, a, 16), step(device, a, 16, y, 16), step(device, x, 16, b, 8), step(device, b, 8, z, 8)});
  REQUIRE(recorded);
  CHECK(device->parts_made() == Parts{{64, 32}});
  REQUIRE(executor->wait(executor->replay(*recorded, Deadline::never()).value(), Deadline::never()));
  CHECK(device->last_waits() == std::vector<bool>{true, true, true, true});
  CHECK(values_of(*y.host) == std::vector<float>(16, 3));
  CHECK(values_of(*z.host) == std::vector<float>(8, 3));
}

TEST_CASE(
    "recordings: a tensor that is filled before or read after a replay is needed from its beginning, or to its end",
    "[executor][recording]") {
  const auto device = std::make_shared<SyntheticDevice>();
  struct Case {
    const char* what;
    bool filled, read;
    std::uint64_t device_bytes, upload_bytes, readback_bytes;
  };
  for (const Case& one : {Case{"neither", false, false, 16, 16, 32}, Case{"filled", true, false, 32, 32, 32},
                          Case{"read", false, true, 16, 16, 48}, Case{"both", true, true, 32, 32, 48}}) {
    CAPTURE(one.what);
    const TensorArgument early = of_device(4);
    const TensorArgument late =
        of_device(4, one.filled ? tensor_of({5, 5, 5, 5}) : nullptr, one.read ? tensor_of({0, 0, 0, 0}) : nullptr);
    const TensorArgument x = of_host(4, 1), y = of_host(4), z = of_host(4);
    auto made = executor::RecordedWork::create(
        {step(device, x, 4, early, 4), step(device, early, 4, y, 4), step(device, late, 4, z, 4)});
    REQUIRE(made);
    CHECK((*made)->device_bytes == one.device_bytes);
    CHECK((*made)->live_bytes == one.device_bytes);
    CHECK((*made)->upload_bytes(*device) == one.upload_bytes);
    CHECK((*made)->readback_bytes(*device) == one.readback_bytes);
  }
  // One that is read at the end is needed while others come.
  const auto result = tensor_of({0, 0, 0, 0});
  const TensorArgument early = of_device(4, nullptr, result), late = of_device(4), x = of_host(4, 1), y = of_host(4);
  auto made = executor::RecordedWork::create(
      {step(device, x, 4, early, 4), step(device, x, 4, late, 4), step(device, late, 4, y, 4)});
  REQUIRE(made);
  CHECK((*made)->device_bytes == 32);
}

TEST_CASE("recordings: a host tensor's buffer is of its use in all submissions", "[executor][recording]") {
  const auto memory = GENERATE(Memory::plain, Memory::wrapped);
  const auto device = std::make_shared<SyntheticDevice>(memory);
  const TensorArgument x = of_host(4, 1), between = of_host(4), y = of_host(4);
  auto made = executor::RecordedWork::create({step(device, x, 4, between, 4), step(device, between, 4, y, 4)});
  REQUIRE(made);
  CHECK(device->buffers_alive(BufferUsage::upload) == 1);
  CHECK(device->buffers_alive(BufferUsage::storage) == 1);
  CHECK(device->buffers_alive(BufferUsage::readback) == 1);
  const bool copies = memory == Memory::plain;
  CHECK((*made)->upload_bytes(*device) == (copies ? 16 : 0));    // x alone
  CHECK((*made)->readback_bytes(*device) == (copies ? 32 : 0));  // what is written, also where it is read again
  CHECK_FALSE((*made)->may_share(*device));
  CHECK((*made)->device() == device);
  CHECK_FALSE((*made)->in_flight());
  CHECK((*made)->begin());
  CHECK_FALSE((*made)->begin());
  CHECK((*made)->in_flight());
  (*made)->release();
  CHECK_FALSE((*made)->in_flight());
}

TEST_CASE("recordings: scratch is shared by the submissions, as large as the largest needs it",
          "[executor][recording]") {
  const auto device = std::make_shared<SyntheticDevice>();
  const auto executor = ring(1);
  std::vector<Job> jobs{two_passes(device, {1, 2}), two_passes(device, {3, 4, 5}), two_passes(device, {6})};
  const auto sizes = std::make_shared<std::vector<std::size_t>>();  // in floats
  for (Job& job : jobs) {
    job.submission.programs[0] = program_of([sizes](const Memories& m) {
      sizes->push_back(m[1].size());
      for (std::size_t i = 0; i < std::min(m[0].size(), m[1].size()); ++i) m[1][i] = m[0][i] + 1;
    });
  }
  const auto recorded =
      executor->record({jobs[0].submission, jobs[1].submission, jobs[2].submission, add_one(device, {1}).submission});
  REQUIRE(recorded);
  CHECK(device->buffers_made(BufferUsage::storage) == 1);
  REQUIRE(executor->wait(executor->replay(*recorded, Deadline::never()).value(), Deadline::never()));
  CHECK(values_of(*jobs[0].output) == std::vector<float>{4, 6});
  CHECK(values_of(*jobs[1].output) == std::vector<float>{8, 10, 12});
  CHECK(values_of(*jobs[2].output) == std::vector<float>{14});
  CHECK(*sizes == std::vector<std::size_t>{3, 3, 3});
}

TEST_CASE("recordings: a poison in an output reaches the device when asked for", "[executor][recording]") {
  const bool poisons = GENERATE(false, true);
  const auto device = std::make_shared<SyntheticDevice>();
  const auto executor = ring(1);
  Job job = add_one(device, {1, 2});
  job.submission.programs = {program_of([](const Memories& m) { m[1][0] = 5; })};  // leaves the second as it was
  job.submission.upload_outputs = poisons;
  job.output->as<float>()[1] = -99;
  const auto recorded = executor->record({job.submission});
  REQUIRE(recorded);
  REQUIRE(executor->wait(executor->replay(*recorded, Deadline::never()).value(), Deadline::never()));
  CHECK(job.output->as<float>()[0] == 5);
  CHECK((job.output->as<float>()[1] == -99) == poisons);
}

TEST_CASE("recordings: an error of a Constant names its submission", "[executor][recording]") {
  const auto device = std::make_shared<SyntheticDevice>();
  const auto executor = ring(1);
  const auto recorded =
      executor->record({add_one(device, {1, 1}).submission, weigh(device, {1, 1}, constant_of({2, 3})).submission});
  REQUIRE(recorded);
  device->refuse_buffers(unavailable("no memory left"));
  const auto failed = executor->wait(executor->replay(*recorded, Deadline::never()).value(), Deadline::never());
  REQUIRE_FALSE(failed);
  CHECK(failed.error().text() ==
        "unavailable: the queue of device synthetic:0: submission 1: tensor w: no memory left");
  device->refuse_buffers(std::nullopt);
  CHECK_FALSE((*recorded)->in_flight());
  CHECK(executor->wait(executor->replay(*recorded, Deadline::never()).value(), Deadline::never()));
}

TEST_CASE("work: a buffer that the device does not make is an error with the tensor's name", "[executor]") {
  const auto memory = GENERATE(Memory::plain, Memory::wrapped);
  const auto device = std::make_shared<SyntheticDevice>(memory);
  const auto executor = ring(1);
  const auto error_after = [&](const Job& job, std::size_t buffers) {
    device->refuse_buffers(unavailable("no memory left"), buffers);
    const auto result = executor->wait(executor->submit(job.submission).value(), Deadline::never());
    device->refuse_buffers(std::nullopt);
    return result ? "none" : result.error().message;
  };
  const std::string queue = "the queue of device synthetic:0: ", why = ": no memory left";
  CHECK(error_after(two_passes(device, {1, 2}), 0) == queue + "tensor x" + why);
  CHECK(error_after(two_passes(device, {1, 2, 3}), 1) == queue + "tensor y" + why);
  CHECK(error_after(two_passes(device, {1, 2, 3, 4}), 2) == queue + "scratch s" + why);
  CHECK(error_after(add_numbers(device, {1, 2}, constant_of({2, 3})), 0) ==
        queue + "constant 0 of plan add_numbers" + why);
  const auto packings = std::make_shared<std::atomic<int>>(0);
  CHECK(error_after(weigh_packed(device, {1, 2}, constant_of({4, 5}), packings), 1) ==
        queue + "packed constant reversed" + why);
  CHECK(*packings == 0);
}

TEST_CASE("work: lists of sources are as many as the passes", "[executor]") {
  const auto device = std::make_shared<SyntheticDevice>();
  Submission submission = two_passes(device, {1, 2}).submission;
  CHECK(executor::check(submission, executor::Use::submit).ok());
  submission.sources.resize(2);
  CHECK(executor::check(submission, executor::Use::submit).ok());
  submission.sources.resize(1);
  CHECK(executor::check(submission, executor::Use::submit).text() ==
        "invalid_argument: plan two_passes: 1 lists of sources given, expected 2");
  submission.device = nullptr;
  CHECK(executor::check(submission, executor::Use::submit).text() == "invalid_argument: submission has no device");
}

TEST_CASE("work: an argument of a recording is a host tensor, a Constant or a device tensor", "[executor][recording]") {
  const auto device = std::make_shared<SyntheticDevice>();
  Submission submission = add_one(device, {1}).submission;
  submission.tensors[1] = of_device(1);
  CHECK(executor::check(submission, executor::Use::record).ok());
  submission.tensors[1].constant = constant_of({1});
  CHECK(executor::check(submission, executor::Use::record).text() ==
        "invalid_argument: plan add_one: tensor y: a DeviceTensor and another argument given, expected only one");
  submission.tensors[1] = of_device(1, tensor_of({1}), tensor_of({1, 2}));
  CHECK(executor::check(submission, executor::Use::record).text() ==
        "invalid_argument: plan add_one: tensor y: a DeviceTensor of 4 bytes with a host tensor of 8, expected equal "
        "sizes");
  submission.tensors[1] = of_device(1, tensor_of({1}), tensor_of({2}));
  CHECK(executor::check(submission, executor::Use::record).ok());
}

TEST_CASE("work: a failure that names its device is told as it is", "[executor]") {
  const auto device = std::make_shared<SyntheticDevice>();
  const auto executor = ring(1);
  device->fail(1, internal_error("synthetic:0: broken"));
  device->fail(2, internal_error("synthetic:01: broken"));
  const auto error = [&] {
    const auto result = executor->wait(executor->submit(add_one(device, {1}).submission).value(), Deadline::never());
    return result ? "none" : result.error().text();
  };
  CHECK(error() == "internal: synthetic:0: broken");
  CHECK(error() == "internal: the queue of device synthetic:0: synthetic:01: broken");
  CHECK(error() == "none");
}

TEST_CASE("recordings: what each submission took is told, by the device or by the clock", "[executor][recording]") {
  const auto device = std::make_shared<SyntheticDevice>();
  device->untimed = true;
  device->wait_ns = 100'000;
  const bool tells = GENERATE(true, false);
  device->tells_time = tells;
  const auto executor = ring(1);
  const auto recorded = executor->record(
      {add_one(device, {1}).submission, add_one(device, {2}).submission, add_one(device, {3}).submission});
  REQUIRE(recorded);
  (*recorded)->measures_each = true;
  const std::uint64_t before = device->clock_ns();
  REQUIRE(executor->wait(executor->replay(*recorded, Deadline::never()).value(), Deadline::never()));
  const auto& measured = (*recorded)->measured;
  REQUIRE(measured.size() == 3);
  std::uint64_t last = before;
  for (std::size_t i = 0; i < 3; ++i) {
    CAPTURE(i);
    CHECK(measured[i].begun_ns > last);
    last = measured[i].begun_ns;
    if (tells) {
      CHECK(measured[i].device_ns == 1001 + i);
    } else {
      CHECK(measured[i].device_ns >= 100'000);
      CHECK(measured[i].device_ns < 101'000);  // and the looks at the clock
    }
  }
}
