// What the ring executor itself costs: jobs on a device that does nothing.
//
// streamed: wall ÷ jobs, 16 in flight, in batches of 1,000; round_trip: one submit and its wait. Both report the median
// and the 99th percentile over what Google Benchmark ran; the time column is the mean.
#include "executor/ring_executor.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

namespace {

using namespace kiln;

class NothingBuffer final : public Buffer {
 public:
  explicit NothingBuffer(const BufferDesc& desc)
      : own_(desc.host.empty() ? desc.bytes : 0), memory_(desc.host.empty() ? std::span(own_) : desc.host) {}
  std::uint64_t bytes() const noexcept override { return memory_.size(); }
  Status write(std::uint64_t, std::span<const std::byte>) noexcept override { return {}; }
  Status read(std::uint64_t, std::span<std::byte>) noexcept override { return {}; }
  std::span<std::byte> mapped() noexcept override { return memory_; }
  Result<UniqueFd> export_fd() noexcept override { return unsupported("export"); }

 private:
  std::vector<std::byte> own_;
  std::span<std::byte> memory_;
};

class NothingProgram final : public Program {
 public:
  std::uint64_t charge() const noexcept override { return 0; }
};

class NothingDevice final : public Device {
 public:
  explicit NothingDevice(bool wraps) {
    info_.id = "nothing:0";
    info_.wraps_host_memory = wraps;
  }
  const DeviceInfo& info() const noexcept override { return info_; }
  Result<std::unique_ptr<Buffer>> create_buffer(const BufferDesc& desc) noexcept override {
    return std::unique_ptr<Buffer>(std::make_unique<NothingBuffer>(desc));
  }
  Result<std::unique_ptr<Program>> build(const KernelSource&) noexcept override { return unsupported("build"); }
  Result<std::unique_ptr<Program>> load(const KernelSource&, const ProgramBinary&) noexcept override {
    return unsupported("load");
  }
  Result<ProgramBinary> serialize(const Program&) noexcept override { return unsupported("serialize"); }
  Result<std::uint64_t> submit(const Dispatch&) noexcept override { return ++last_; }
  Result<FenceResult> wait(std::uint64_t, Deadline) noexcept override { return FenceResult{}; }

 private:
  DeviceInfo info_;
  std::uint64_t last_ = 0;  // of the one submit thread
};

template <class T>
T need(Result<T> result) {
  if (!result) std::abort();
  return std::move(result).value();
}

Submission submission_on(std::shared_ptr<Device> device) {
  constexpr std::uint64_t bytes = 256;
  KernelPlan plan;
  plan.variant = "nothing";
  plan.tensors = {{"x", TensorRole::input, bytes}, {"y", TensorRole::output, bytes}};
  Pass pass;
  pass.source.dialect = Dialect::library;
  pass.source.bindings = {Access::read, Access::write};
  pass.bindings = {{BindingSource::tensor, 0}, {BindingSource::tensor, 1}};
  plan.passes = {pass};
  Submission submission;
  submission.device = std::move(device);
  submission.plan = std::make_shared<const KernelPlan>(plan);
  submission.programs = {ProgramHandle(std::make_shared<const NothingProgram>())};
  for (int i = 0; i < 2; ++i) submission.tensors.push_back({need(HostTensor::create(DType::f32, {64})), nullptr});
  return submission;
}

std::unique_ptr<Executor> ring(std::uint32_t in_flight) {
  ExecutorContext context;
  context.config.in_flight = in_flight;
  return need(RingExecutor::create(context));
}

void report(benchmark::State& state, std::vector<double>& each_ns) {
  std::sort(each_ns.begin(), each_ns.end());
  const auto at = [&](double share) { return each_ns[static_cast<std::size_t>(share * double(each_ns.size() - 1))]; };
  state.counters["p50_us"] = at(0.50) / 1e3;
  state.counters["p99_us"] = at(0.99) / 1e3;
}

void streamed(benchmark::State& state) {
  constexpr std::size_t depth = 16, batch = 1000;
  const auto device = std::make_shared<NothingDevice>(state.range(0) != 0);
  const auto executor = ring(depth);
  // A job in flight owns its output, so each of those in flight has tensors of its own.
  std::vector<Submission> jobs;
  for (std::size_t i = 0; i < depth; ++i) jobs.push_back(submission_on(device));
  std::vector<double> each_ns;
  std::vector<Fence> fences(depth);
  for (auto step : state) {
    static_cast<void>(step);
    const std::uint64_t begin = now_ns();
    for (std::size_t i = 0; i < batch + depth; ++i) {
      if (i >= depth) need(executor->wait(fences[i % depth], Deadline::never()));
      if (i < batch) fences[i % depth] = need(executor->submit(jobs[i % depth]));
    }
    each_ns.push_back(static_cast<double>(now_ns() - begin) / batch);
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(each_ns.size() * batch));
  report(state, each_ns);
}

void round_trip(benchmark::State& state) {
  const auto device = std::make_shared<NothingDevice>(state.range(0) != 0);
  const auto executor = ring(3);
  const Submission job = submission_on(device);
  std::vector<double> each_ns;
  for (auto step : state) {
    static_cast<void>(step);
    const std::uint64_t begin = now_ns();
    need(executor->wait(need(executor->submit(job)), Deadline::never()));
    each_ns.push_back(static_cast<double>(now_ns() - begin));
  }
  report(state, each_ns);
}

BENCHMARK(streamed)->ArgName("wraps")->Arg(1)->Arg(0)->UseRealTime()->MinTime(1);
BENCHMARK(round_trip)->ArgName("wraps")->Arg(1)->Arg(0)->UseRealTime()->MinTime(1);

}  // namespace

BENCHMARK_MAIN();
