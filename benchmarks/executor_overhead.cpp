// What the ring executor itself costs: jobs on a device that does nothing.
//
// streamed: wall ÷ jobs, 16 in flight, in batches of 1,000 submissions made beforehand; replayed: the same with
// recordings of one job each; plain_queue: streamed through a thread behind a mutex instead; round_trip: one submit and
// its wait; naive and recorded: 1,000 tiny dispatches, each submitted and waited for, against one recording of all. p50
// and p99 are over what Google Benchmark ran, and the time column is the mean. allocations: calls of operator new per
// job by all threads while the clock ran. sleeps, preempted: how often a job a thread went to sleep, and lost its core
// to something else, in the usual batch and in the slowest hundredth: what is slow because threads wake one another,
// and what because they were not let run.
#include "executor/ring_executor.hpp"

#include "figures.hpp"
#include "google_figures.hpp"

#include <benchmark/benchmark.h>

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

namespace {

std::atomic<std::uint64_t> allocations{0};

}  // namespace

[[gnu::noinline]] void* operator new(std::size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

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

constexpr std::size_t depth = 16;
constexpr std::size_t batch = 1000;

// Of the process since it began.
struct Switches {
  double sleeps = 0, preempted = 0;
  static Switches now() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return {static_cast<double>(usage.ru_nvcsw), static_cast<double>(usage.ru_nivcsw)};
  }
};

class Record {
 public:
  void begin() {
    allocated_ = allocations.load();
    switched_ = Switches::now();
    begin_ = now_ns();
  }
  void end(std::size_t jobs) {
    const double count = static_cast<double>(jobs);
    Batch ended{static_cast<double>(now_ns() - begin_) / count, {}};
    const Switches now = Switches::now();
    ended.each = {(now.sleeps - switched_.sleeps) / count, (now.preempted - switched_.preempted) / count};
    batches_.push_back(ended);
    in_all_ += allocations.load() - allocated_;
    jobs_ += jobs;
    // What the first round allocates is kept and used again.
    if (batches_.size() == 1) in_all_ = jobs_ = 0;
  }
  void report(benchmark::State& state) {
    std::ranges::sort(batches_, {}, &Batch::each_ns);
    const auto place = [&](double share) {
      return static_cast<std::size_t>(share * static_cast<double>(batches_.size() - 1));
    };
    const auto mean = [&](std::size_t from, std::size_t to, double Switches::*what) {
      double sum = 0;
      for (std::size_t i = from; i < to; ++i) sum += batches_[i].each.*what;
      return sum / static_cast<double>(to - from);
    };
    const std::size_t slow = place(0.99), lower = place(0.25), upper = place(0.75) + 1;
    state.counters["p50_us"] = batches_[place(0.50)].each_ns / 1e3;
    state.counters["p99_us"] = batches_[slow].each_ns / 1e3;
    state.counters["sleeps"] = mean(lower, upper, &Switches::sleeps);
    state.counters["slow_sleeps"] = mean(slow, batches_.size(), &Switches::sleeps);
    state.counters["preempted"] = mean(lower, upper, &Switches::preempted);
    state.counters["slow_preempted"] = mean(slow, batches_.size(), &Switches::preempted);
    // To hundredths: what a queue grows by once is no cost of a job.
    if (jobs_ != 0) {
      state.counters["allocations"] = std::round(100 * static_cast<double>(in_all_) / static_cast<double>(jobs_)) / 100;
    }
  }

 private:
  struct Batch {
    double each_ns;
    Switches each;  // a job
  };
  std::vector<Batch> batches_ = [] {
    std::vector<Batch> room;
    room.reserve(1 << 20);
    return room;
  }();
  Switches switched_;
  std::uint64_t begin_ = 0, allocated_ = 0, in_all_ = 0, jobs_ = 0;
};

void streamed(benchmark::State& state) {
  const auto device = std::make_shared<NothingDevice>(state.range(0) != 0);
  const auto executor = ring(depth);
  // A job in flight owns its output, so each of those in flight has tensors of its own.
  std::vector<Submission> jobs;
  for (std::size_t i = 0; i < depth; ++i) jobs.push_back(submission_on(device));
  Record record;
  std::vector<Fence> fences(depth);
  std::vector<Submission> made;
  made.reserve(batch);
  const auto run = [&] {
    made.clear();
    for (std::size_t i = 0; i < batch; ++i) made.push_back(jobs[i % depth]);
    record.begin();
    for (std::size_t i = 0; i < batch + depth; ++i) {
      if (i >= depth) need(executor->wait(fences[i % depth], Deadline::never()));
      if (i < batch) fences[i % depth] = need(executor->submit(std::move(made[i])));
    }
    record.end(batch);
  };
  run();  // the record leaves out the allocations of the first
  for ([[maybe_unused]] auto step : state) run();
  record.report(state);
}

void replayed(benchmark::State& state) {
  const auto device = std::make_shared<NothingDevice>(state.range(0) != 0);
  const auto executor = ring(depth);
  std::vector<std::shared_ptr<Recording>> jobs;
  for (std::size_t i = 0; i < depth; ++i) jobs.push_back(need(executor->record({submission_on(device)})));
  Record record;
  std::vector<Fence> fences(depth);
  const auto run = [&] {
    record.begin();
    for (std::size_t i = 0; i < batch + depth; ++i) {
      if (i >= depth) need(executor->wait(fences[i % depth], Deadline::never()));
      if (i < batch) fences[i % depth] = need(executor->replay(jobs[i % depth], Deadline::never()));
    }
    record.end(batch);
  };
  run();  // likewise
  for ([[maybe_unused]] auto step : state) run();
  record.report(state);
}

void round_trip(benchmark::State& state) {
  const auto device = std::make_shared<NothingDevice>(state.range(0) != 0);
  const auto executor = ring(3);
  const Submission job = submission_on(device);
  Record record;
  for (auto step : state) {
    static_cast<void>(step);
    Submission made = job;
    record.begin();
    need(executor->wait(need(executor->submit(std::move(made))), Deadline::never()));
    record.end(1);
  }
  record.report(state);
}

// What a person would write who wants calls off the calling thread: one thread that takes them, memory copied in and
// out as the ring's is, the caller told by a condition variable.
class PlainQueue {
 public:
  explicit PlainQueue(std::shared_ptr<Device> device) : device_(std::move(device)) {
    input_ = need(device_->create_buffer({256, BufferUsage::upload, {}, -1}));
    output_ = need(device_->create_buffer({256, BufferUsage::readback, {}, -1}));
    thread_ = std::thread([this] { serve(); });
  }
  PlainQueue(const PlainQueue&) = delete;
  PlainQueue& operator=(const PlainQueue&) = delete;
  ~PlainQueue() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  std::uint64_t submit(const Submission& job) {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(&job);
    changed_.notify_all();
    return ++submitted_;
  }
  void wait(std::uint64_t value) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return done_ >= value; });
  }

 private:
  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return ended_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      const Submission& job = *waiting_.front();
      waiting_.pop_front();
      lock.unlock();
      if (!input_->write(0, job.tensors[0].host->bytes()).ok()) std::abort();
      Buffer* bound[] = {input_.get(), output_.get()};
      const PassLaunch launch{job.programs[0].get(), bound, {1, 1, 1}};
      need(device_->wait(need(device_->submit({std::span(&launch, 1)})), Deadline::never()));
      if (!output_->read(0, job.tensors[1].host->bytes()).ok()) std::abort();
      lock.lock();
      ++done_;
      changed_.notify_all();
    }
  }

  std::shared_ptr<Device> device_;
  std::unique_ptr<Buffer> input_, output_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<const Submission*> waiting_;
  std::uint64_t submitted_ = 0, done_ = 0;
  bool ended_ = false;
  std::thread thread_;
};

void plain_queue(benchmark::State& state) {
  const auto device = std::make_shared<NothingDevice>(false);
  std::vector<Submission> jobs;
  for (std::size_t i = 0; i < depth; ++i) jobs.push_back(submission_on(device));
  PlainQueue queue(device);
  Record record;
  std::vector<std::uint64_t> values(depth);
  for (auto step : state) {
    static_cast<void>(step);
    record.begin();
    for (std::size_t i = 0; i < batch + depth; ++i) {
      if (i >= depth) queue.wait(values[i % depth]);
      if (i < batch) values[i % depth] = queue.submit(jobs[i % depth]);
    }
    record.end(batch);
  }
  record.report(state);
}

void naive(benchmark::State& state) {
  const auto device = std::make_shared<NothingDevice>(false);
  const auto executor = ring(3);
  std::vector<Submission> jobs;
  for (std::size_t i = 0; i < batch; ++i) jobs.push_back(submission_on(device));
  Record record;
  for (auto step : state) {
    static_cast<void>(step);
    std::vector<Submission> made = jobs;
    record.begin();
    for (Submission& job : made) need(executor->wait(need(executor->submit(std::move(job))), Deadline::never()));
    record.end(batch);
  }
  record.report(state);
}

void recorded(benchmark::State& state) {
  const auto device = std::make_shared<NothingDevice>(false);
  const auto executor = ring(3);
  std::vector<Submission> jobs;
  for (std::size_t i = 0; i < batch; ++i) jobs.push_back(submission_on(device));
  const auto recording = need(executor->record(std::move(jobs)));
  Record record;
  for (auto step : state) {
    static_cast<void>(step);
    record.begin();
    need(executor->wait(need(executor->replay(recording, Deadline::never())), Deadline::never()));
    record.end(batch);
  }
  record.report(state);
}

BENCHMARK(streamed)->ArgName("wraps")->Arg(1)->Arg(0)->UseRealTime();
BENCHMARK(replayed)->ArgName("wraps")->Arg(1)->Arg(0)->UseRealTime();
BENCHMARK(round_trip)->ArgName("wraps")->Arg(1)->Arg(0)->UseRealTime();
BENCHMARK(plain_queue)->UseRealTime();
BENCHMARK(naive)->UseRealTime();
BENCHMARK(recorded)->UseRealTime();

struct Told {
  const char* benchmark;
  const char* counter;
  const char* id;
  const char* name;
  const char* unit;
  const char* theirs;  // nullptr: nobody
  const char* peer;
  double goal;  // of Kiln's median; below 0: none
};

constexpr Told told[] = {
    {"streamed/wraps:0", "p50_us", "executor.streamed/plain_queue", "a job of a stream, 16 in flight", "us",
     "plain_queue", "a thread behind a mutex and a condition variable", 5},
    {"streamed/wraps:0", "p99_us", "executor.streamed.p99/plain_queue", "likewise, the slowest hundredth of batches",
     "us", "plain_queue", "a thread behind a mutex and a condition variable", 20},
    {"streamed/wraps:1", "p50_us", "executor.streamed.wrapped", "likewise, memory wrapped", "us", nullptr, "", -1},
    {"replayed/wraps:0", "p50_us", "executor.replayed", "a recording of one job, 16 in flight", "us", nullptr, "", -1},
    {"round_trip/wraps:0", "p50_us", "executor.round_trip", "one submit and its wait", "us", nullptr, "", -1},
    {"recorded", "p50_us", "executor.recorded/naive", "a dispatch of a recording of 1,000", "us", "naive",
     "submitted and waited for one by one", -1},
};

int run_and_tell(int argc, char** argv) {
  bench::FigureFile file = bench::FigureFile::of_words(argc, argv);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  bench::GoogleFigures ran;
  benchmark::RunSpecifiedBenchmarks(&ran);
  if (ran.failed()) return 1;
  const auto samples = [&](const char* benchmark, const char* counter) {
    const auto* found = ran.samples(std::string(benchmark) + "@1", counter);
    return found != nullptr ? *found : std::vector<double>();
  };
  for (const Told& each : told) {
    bench::Figure figure;
    figure.id = each.id;
    figure.name = each.name;
    figure.unit = each.unit;
    figure.kiln = samples(each.benchmark, each.counter);
    if (each.theirs != nullptr) figure.peer = bench::Peer{each.peer, samples(each.theirs, each.counter)};
    if (figure.kiln.empty() || (figure.peer && figure.peer->samples.empty())) continue;  // filtered out
    if (each.goal >= 0) figure.target = bench::Target{bench::Target::Of::kiln, each.goal};
    file.add(std::move(figure));
  }
  for (const char* benchmark : {"streamed/wraps:0", "replayed/wraps:0"}) {
    bench::Figure figure;
    figure.id = std::string("executor.allocations.") + (*benchmark == 's' ? "streamed" : "replayed");
    figure.name = *benchmark == 's' ? "allocations a job of a stream" : "allocations a replayed job";
    figure.unit = "allocations";
    figure.kiln = samples(benchmark, "allocations");
    figure.target = bench::Target{bench::Target::Of::kiln, 0};
    figure.stable = true;
    if (!figure.kiln.empty()) file.add(std::move(figure));
  }
  file.write();
  return 0;
}

}  // namespace

int main(int argc, char** argv) try { return run_and_tell(argc, argv); } catch (const std::exception& error) {
  std::fprintf(stderr, "executor_overhead: %s\n", error.what());
  return 1;
}
