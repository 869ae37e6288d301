// Requests recorded and replayed through the Runtime, and unordered completion of its runs.
#include "core/runtime/runtime_fixture.hpp"

#include "support/simulated/sim_driver.hpp"

#include <catch2/catch.hpp>

#include <future>
#include <thread>

using namespace kiln;
using namespace kiln::test;
using Catch::Matchers::Contains;

namespace {

// A second convolution, of what the first one writes.
RunRequest after(const RunRequest& first) {
  RunRequest request = small_conv2d();
  auto& spec = std::get<Conv2dSpec>(request.spec);
  spec.c = 3, spec.k = 2;
  request.name = "second";
  request.tensors[0] = first.tensors[2];
  const auto weights = HostTensor::create(DType::f32, {2, 3, 3, 3}).value();
  float next = -1;
  for (float& value : weights->as<float>()) value = next += 0.03f;
  request.tensors[1].constant = Constant::create(weights);
  request.tensors[2].host = HostTensor::create(DType::f32, {1, 2, 6, 6}).value();
  return request;
}

// Records nothing.
class PlainExecutor final : public Executor {
 public:
  Result<Fence> submit(Submission) noexcept override { return unsupported("no job is expected"); }
  Result<Measurement> wait(Fence, Deadline) noexcept override { return unsupported("no job is expected"); }
  std::uint64_t backlog_ns(const Device&) const noexcept override { return 0; }
};

}  // namespace

TEST_CASE("recording: requests are prepared once and replayed as one job, with what their tensors hold then") {
  RuntimeFixture fixture;
  Runtime& runtime = fixture.runtime();
  const RunRequest first = small_conv2d();
  const RunRequest second = after(first);
  auto recorded = runtime.record({first, second}, "beta");
  REQUIRE(recorded);
  CHECK((*recorded)->jobs() == 2);
  CHECK((*recorded)->device().id == "beta");
  CHECK((*recorded)->selected_because() == "requested");
  CHECK(runtime.counters().builds == 2);
  CHECK(fixture.controls("beta").submits == 0);

  for (std::uint64_t replay = 1; replay <= 3; ++replay) {
    for (float& value : first.tensors[0].host->as<float>()) value += 0.125f;
    const RunReport report = runtime.replay(**recorded);
    REQUIRE(report.status.text() == "ok");
    CHECK(report.verified == true);  // both, against the reference
    CHECK(report.device.id == "beta");
    CHECK(report.name == "recording of 2");
    CHECK(report.variant == "recording of 2");
    CHECK(report.runs == 1);
    CHECK(report.keys.size() == 2);
    CHECK(report.tier == (replay == 1 ? Tier::built : Tier::memory));
    CHECK(report.flops == Approx(flops(first.spec) + flops(second.spec)));
    CHECK(report.median.wall_ns > 0);
    CHECK(report.median.tier == report.tier);
    CHECK(report.wall_min_ns == report.median.wall_ns);
    CHECK(report.wall_max_ns == report.median.wall_ns);
    CHECK(report.first_output_ns > 0);
    CHECK(fixture.controls("beta").submits == replay);  // all passes in one submission
  }
  CHECK(runtime.counters().builds == 2);
  CHECK(fixture.learned == 0);
}

TEST_CASE("recording: those requests are compared that ask for it, and the others not") {
  RuntimeFixture fixture;
  RunRequest unverified = small_conv2d();
  unverified.verify = false;
  auto none = fixture.runtime().record({unverified}, "alpha");
  REQUIRE(none);
  CHECK_FALSE(fixture.runtime().replay(**none).verified);
  auto second = fixture.runtime().record({unverified, small_gemm()}, "alpha");
  REQUIRE(second);
  CHECK(fixture.runtime().replay(**second).verified == true);
}

TEST_CASE("recording: one device is chosen for all, and another serves where it cannot") {
  RuntimeFixture fixture;
  SECTION("chosen") {
    auto recorded = fixture.runtime().record({small_conv2d(), small_gemm()});
    REQUIRE(recorded);
    CHECK_FALSE((*recorded)->selected_because().empty());
    CHECK(fixture.runtime().replay(**recorded).verified == true);
  }
  SECTION("no memory on the first") {
    fixture.config.device.prefer = "alpha";
    fixture.controls("alpha").fail_buffers = true;
    auto recorded = fixture.runtime().record({small_conv2d()});
    REQUIRE(recorded);
    CHECK((*recorded)->device().id == "beta");
    const RunReport report = fixture.runtime().replay(**recorded);
    CHECK(report.status.text() == "ok");
    REQUIRE_FALSE(report.notes.empty());
    CHECK_THAT(report.notes[0], Contains("alpha cannot serve"));
  }
  SECTION("and none may") {
    fixture.config.device.prefer = "alpha";
    fixture.config.device.fallback = Fallback::never;
    fixture.controls("alpha").fail_buffers = true;
    const auto recorded = fixture.runtime().record({small_conv2d()});
    REQUIRE_FALSE(recorded);
    CHECK_THAT(recorded.error().message, Contains("never"));
  }
}

TEST_CASE("recording: where the executor records nothing, no other device is tried") {
  RuntimeFixture fixture;
  REQUIRE(fixture.registry
              .add_executor("test", "plain",
                            [](const ExecutorContext&) {
                              return Result<std::unique_ptr<Executor>>(std::make_unique<PlainExecutor>());
                            })
              .ok());
  fixture.config.executor.name = "plain";
  fixture.config.device.prefer = "alpha";
  const auto recorded = fixture.runtime().record({small_conv2d()});
  REQUIRE_FALSE(recorded);
  CHECK(recorded.error().text() == "unsupported: this executor cannot record submissions");
  CHECK(fixture.runtime().counters().builds == 1);  // for alpha
}

TEST_CASE("recording: what cannot be recorded is told, with the request that is amiss") {
  RuntimeFixture fixture;
  Runtime& runtime = fixture.runtime();
  const auto error_of = [&](std::vector<RunRequest> requests) {
    const auto recorded = runtime.record(std::move(requests));
    REQUIRE_FALSE(recorded);
    CHECK(recorded.error().code == StatusCode::invalid_argument);
    return recorded.error().message;
  };
  CHECK_THAT(error_of({}), Contains("no requests given"));
  RunRequest amiss = small_gemm();
  amiss.repeat = 3;
  CHECK_THAT(error_of({small_conv2d(), amiss}), Contains("request 1 'product'") && Contains("3 repeats"));
  amiss = small_gemm();
  amiss.device = "beta";
  CHECK_THAT(error_of({amiss}), Contains("device beta"));
  amiss = small_gemm();
  amiss.timeout = std::chrono::seconds(1);
  CHECK_THAT(error_of({amiss}), Contains("a timeout or a stop flag given, expected none"));
  amiss = small_gemm();
  amiss.tensors.pop_back();
  CHECK_THAT(error_of({amiss}), Contains("2 tensors given, expected 3"));

  // What is compared is poisoned before the replay and looked at after it.
  const RunRequest first = small_conv2d();
  RunRequest reader = after(first);
  CHECK_THAT(error_of({reader, first}),
             Contains("request 0 'second': cannot be verified: the later request 1 'small' writes this request's "
                      "tensor input"));
  reader.verify = false;
  CHECK_THAT(error_of({reader, first}),
             Contains("request 1 'small': cannot be verified: the earlier request 0 'second' reads this request's "
                      "tensor output"));
  CHECK_THAT(error_of({first, first}),
             Contains("request 0 'small': cannot be verified: the later request 1 'small' writes this request's"));
  RunRequest unverified = first;
  unverified.verify = false;
  CHECK(runtime.record({unverified, unverified}));
}

TEST_CASE("runtime: a tensor that a job writes shares no memory with another one") {
  struct alignas(64) Memory {
    std::byte bytes[4096];
  };
  const auto memory = std::make_unique<Memory>();
  const auto tensor = [&](std::size_t offset, Shape shape) {
    return HostTensor::borrow(DType::f32, std::move(shape), memory->bytes + offset, [] {}).value();
  };
  RuntimeFixture fixture;
  RunRequest request = small_gemm();  // 140 and 80 bytes
  request.device = "alpha";
  request.tensors[0].host = tensor(0, {5, 7});
  request.tensors[2].host = tensor(128, {5, 4});
  CHECK_THAT(fixture.runtime().run(request).status.message, Contains("is written and shares memory with tensor"));
  request.tensors[2].host = tensor(192, {5, 4});
  CHECK(fixture.runtime().run(request).status.text() == "ok");
  request.device.clear();
  RunRequest next = request;
  next.tensors[0].host = request.tensors[0].host;  // what is only read may be shared
  next.tensors[2].host = tensor(320, {5, 4});
  CHECK(fixture.runtime().record({request, next}));
  next.tensors[2].host = tensor(256, {5, 4});
  const auto refused = fixture.runtime().record({request, next});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == StatusCode::invalid_argument);
  CHECK_THAT(refused.error().message, Contains("shares memory with tensor") && Contains("of request 1"));

  // The later one writes what the earlier one reads.
  next.tensors[0].host = tensor(512, {5, 7});
  next.tensors[2].host = tensor(64, {5, 4});
  const auto later = fixture.runtime().record({request, next});
  REQUIRE_FALSE(later);
  CHECK_THAT(later.error().message, Catch::StartsWith("recording: request 1 'product': tensor") &&
                                        Contains("shares memory with tensor") && Contains("of request 0"));

  // A kernel may write its first tensor.
  UserKernelSpec kernel;
  kernel.path = kernel.text = "copy";
  kernel.dialect = Dialect::opencl_c;
  kernel.bindings = {{Access::write, 80}, {Access::read, 80}};
  RunRequest writer;
  writer.name = "kernel";
  writer.spec = kernel;
  writer.tensors = {{tensor(64, {20}), nullptr}, {tensor(512, {20}), nullptr}};
  const auto first = fixture.runtime().record({request, writer});
  REQUIRE_FALSE(first);
  CHECK(first.error().code == StatusCode::invalid_argument);
  CHECK_THAT(first.error().message,
             Contains("request 1 'kernel'") && Contains("shares memory with tensor") && Contains("of request 0"));
}

TEST_CASE("runtime: a tensor on the device belongs to a recording, and to none that is verified") {
  RuntimeFixture fixture;
  RunRequest request = small_conv2d();
  request.verify = GENERATE(false, true);
  const std::size_t at = GENERATE(0u, 2u);
  const std::uint64_t bytes = request.tensors[at].host->bytes().size();
  request.tensors[at] = {nullptr, nullptr, std::make_shared<const DeviceTensor>(DeviceTensor{bytes, nullptr, nullptr})};
  for (const RunReport& report : {fixture.runtime().run(request), fixture.runtime().check(request)}) {
    CHECK(report.status.code == StatusCode::invalid_argument);
    CHECK_THAT(report.status.message, Contains("a DeviceTensor given, expected a host tensor"));
    CHECK(report.device.id.empty());
  }
  const auto recorded = fixture.runtime().record({request}, "alpha");
  CHECK(recorded.has_value() == !request.verify);
  if (!recorded) CHECK_THAT(recorded.error().message, Contains("verify: tensor") && Contains("a DeviceTensor given"));
}

TEST_CASE("recording: a replay that goes wrong is told, and the next one goes on") {
  RuntimeFixture fixture;
  Runtime& runtime = fixture.runtime();
  auto recorded = runtime.record({small_conv2d()}, "alpha").value();
  REQUIRE(runtime.replay(*recorded).status.text() == "ok");
  support::FixtureControls& alpha = fixture.controls("alpha");
  SECTION("a wrong result") {
    alpha.wrong_at = 2;
    const RunReport wrong = runtime.replay(*recorded);
    CHECK(wrong.status.code == StatusCode::wrong_result);
    CHECK_THAT(wrong.status.message, Contains("request 'small'") && Contains("wrong; worst in"));
    CHECK(wrong.runs == 0);
    CHECK(runtime.replay(*recorded).verified == true);
  }
  SECTION("late, and in flight still") {
    alpha.run.close();
    const RunReport late =
        runtime.replay(*recorded, {std::chrono::seconds(1), nullptr});  // within which it is in flight
    CHECK(late.status.code == StatusCode::timeout);
    const RunReport busy = runtime.replay(*recorded);
    CHECK(busy.status.code == StatusCode::invalid_argument);
    CHECK_THAT(busy.status.message, Contains("still in flight"));
    alpha.run.open();
  }
  SECTION("stopped") {
    alpha.run.close();
    std::atomic<bool> stop{true};
    const RunReport stopped = runtime.replay(*recorded, {std::nullopt, &stop});
    CHECK(stopped.status.code == StatusCode::cancelled);
    alpha.run.open();
  }
  SECTION("the device is lost") {
    alpha.lost = true;
    const RunReport lost = runtime.replay(*recorded);
    CHECK(lost.status.code == StatusCode::device_lost);
    REQUIRE(lost.notes.size() == 1);
    CHECK_THAT(lost.notes[0], Contains("alpha was lost (set aside"));
    CHECK(runtime.run(small_conv2d()).device.id == "beta");
  }
}

TEST_CASE("unordered runs: a small job does not wait for the long result of another thread's") {
  // By the host's clock: 1 MiB takes 1 s to come back, the small one's output next to nothing.
  RuntimeFixture fixture;
  for (const char* other : {"alpha", "beta"}) {
    fixture.options(other).info.usable = false;
    fixture.options(other).info.why_not = "not part of this test";
  }
  support::SimOptions device;
  device.info = support::sim_info("simulated:0");
  device.computes = false;
  device.together = true;
  device.model.readback.byte_ns = 1e9 / (1 << 20);
  REQUIRE(fixture.registry
              .add_driver("test", "simulated",
                          [device](const DriverContext&) {
                            return Result<std::unique_ptr<Driver>>(std::make_unique<support::SimDriver>(
                                std::vector<support::SimOptions>{device}, support::Pace::real));
                          })
              .ok());
  fixture.config.device.prefer = "simulated:0";
  RunRequest small = small_conv2d();
  small.verify = false;
  RunRequest large = small;
  auto& spec = std::get<Conv2dSpec>(large.spec);
  spec.h = spec.w = 296;
  large.tensors[0].host = HostTensor::create(DType::f32, {1, 4, 296, 296}).value();
  large.tensors[2].host = HostTensor::create(DType::f32, {1, 3, 296, 296}).value();
  Runtime& runtime = fixture.runtime();
  REQUIRE(runtime.run(small).status.text() == "ok");
  small.completion = Completion::unordered;
  // On a busy machine this thread itself may come back too late, hence several attempts.
  bool was_first = false;
  for (int attempt = 0; attempt < 5 && !was_first; ++attempt) {
    auto other = std::async(std::launch::async, [&] { return runtime.run(large).status.text(); });
    std::this_thread::sleep_for(std::chrono::milliseconds(100));  // upload and dispatch cost it nothing
    REQUIRE(runtime.run(small).status.text() == "ok");
    was_first = other.wait_for(std::chrono::milliseconds(200)) == std::future_status::timeout;
    CHECK(other.get() == "ok");
  }
  CHECK(was_first);
}
