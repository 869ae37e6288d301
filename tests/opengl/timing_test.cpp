// Device times on the host's time line, on a driver whose clock is not the host's.
#include <catch2/catch.hpp>
#include <mutex>
#include <thread>

#include "executor/ring_executor.hpp"
#include "opengl/support/kernels.hpp"
#include "opengl/support/wrapping_egl.hpp"

namespace kiln::support {
namespace {

constexpr std::int64_t hour_ns = 3'600'000'000'000;
constexpr std::uint64_t slack_ns = 1'000'000;  // of comparing the two clocks

// The device's clock for as long as it lives; set before the device is opened, or to let the clocks drift apart.
class DeviceClock {
 public:
  explicit DeviceClock(std::int64_t ahead_ns) { set(ahead_ns); }
  ~DeviceClock() { set(0); }
  void set(std::int64_t ahead_ns) { egl_switches().clock_ahead_ns = ahead_ns; }
};

class DeviceSpans final : public TraceSink {
 public:
  void add_job(std::span<const StageSpan> stages) noexcept override {
    const std::lock_guard lock(mutex_);
    for (const StageSpan& span : stages) {
      if (span.stage == Stage::device) spans_.push_back({span.begin_ns, span.end_ns});
    }
  }
  std::vector<std::pair<std::uint64_t, std::uint64_t>> told() const {
    const std::lock_guard lock(mutex_);
    return spans_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> spans_;
};

Submission saxpy_job(const std::shared_ptr<Device>& device, std::size_t count) {
  const std::uint64_t bytes = count * sizeof(float);
  KernelPlan plan;
  plan.variant = "saxpy";
  plan.tensors = {{"x", TensorRole::input, bytes}, {"y", TensorRole::inout, bytes}};
  Pass& pass = plan.passes.emplace_back();
  pass.source = saxpy();
  pass.bindings = {{BindingSource::tensor, 0}, {BindingSource::tensor, 1}};
  pass.grid = {static_cast<std::uint32_t>(count / 64), 1, 1};
  Submission submission;
  submission.device = device;
  submission.programs = {ProgramHandle(std::shared_ptr<const Program>(build(*device, pass.source)))};
  submission.plan = std::make_shared<const KernelPlan>(std::move(plan));
  for (int i = 0; i < 2; ++i) {
    submission.tensors.push_back({HostTensor::create(DType::f32, {static_cast<std::int64_t>(count)}).value(), nullptr});
  }
  return submission;
}

}  // namespace

TEST_CASE("opengl: a device whose clock is another's tells when it began by the host's", "[opengl][timing]") {
  OpenGl gl(with_wrapping_egl());
  if (!gl.usable()) return;
  DeviceClock clock(0);
  for (const std::int64_t ahead_ns : {hour_ns, -1'000'000'000l}) {
    INFO("ahead by " << ahead_ns << " ns");
    clock.set(ahead_ns);
    const auto device = gl.plugin().open("opengl:0");
    const auto program = build(*device, saxpy());
    const auto x = buffer_of(*device, std::vector<float>(64, 1.0f));
    const auto y = buffer_of(*device, std::vector<float>(64, 1.0f));
    const auto check_one = [&] {
      const std::uint64_t before = now_ns();
      const auto fence = run(*device, *program, {x.get(), y.get()}, {1, 1, 1});
      REQUIRE(fence.has_value());
      CHECK(fence->device_ns > 0);
      CHECK(fence->device_ns < static_cast<std::uint64_t>(hour_ns));
      CHECK(fence->begun_ns + slack_ns >= before);
      CHECK(fence->begun_ns <= now_ns() + slack_ns);
    };
    check_one();
    clock.set(ahead_ns + hour_ns);  // the clocks drift apart; they are compared every second
    std::this_thread::sleep_for(std::chrono::milliseconds(1100));
    check_one();
  }
}

TEST_CASE("opengl: a trace shows the device's work where it was, whatever its clock says", "[opengl][timing]") {
  OpenGl gl(with_wrapping_egl());
  if (!gl.usable()) return;
  const DeviceClock clock(hour_ns);
  const std::shared_ptr<Device> device = gl.plugin().open("opengl:0");
  DeviceSpans spans;
  std::vector<std::uint64_t> device_ns;
  {
    ExecutorContext context;
    context.config.in_flight = 1;
    context.trace = &spans;
    const auto executor = RingExecutor::create(context).value();
    for (int i = 0; i < 3; ++i) {
      const auto fence = executor->submit(saxpy_job(device, 1 << 16));
      REQUIRE(fence.has_value());
      const auto measured = executor->wait(*fence, Deadline::never());
      REQUIRE(measured.has_value());
      device_ns.push_back(measured->device_ns);
    }
  }
  const auto told = spans.told();
  REQUIRE(told.size() == device_ns.size());
  for (std::size_t i = 0; i < told.size(); ++i) {
    INFO("job " << i);
    // Laid beside the job, a span would have been cut to nothing.
    CHECK(told[i].second - told[i].first <= device_ns[i]);
    CHECK(told[i].second - told[i].first + slack_ns >= device_ns[i]);
    CHECK(told[i].second > told[i].first);
  }
}

}  // namespace kiln::support
