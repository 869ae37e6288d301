#include "core/runtime/told_selector.hpp"
#include "support/forwarding_cache.hpp"
#include "support/in_child.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace kiln;
using namespace kiln::test;
using Catch::Matchers::Contains;

TEST_CASE("runtime: a request is built once, then found in memory, and by a second runtime on disk") {
  RuntimeFixture fixture;
  RunRequest request = small_conv2d();
  request.device = "alpha";
  const RunReport first = fixture.runtime().run(request);
  REQUIRE(first.status.text() == "ok");
  CHECK(first.tier == Tier::built);
  CHECK(first.verified == true);
  CHECK(first.max_rel_error <= first.error_bound);
  CHECK(first.keys.size() == 1);
  CHECK(first.build_ns > 0);
  CHECK(fixture.runtime().counters().builds == 1);

  const RunReport second = fixture.runtime().run(request);
  CHECK(second.tier == Tier::memory);
  CHECK(second.build_ns == 0);
  CHECK(fixture.runtime().counters().builds == 1);

  fixture.restart();
  const RunReport again = fixture.runtime().run(request);
  CHECK(again.tier == Tier::disk);
  CHECK(again.keys == first.keys);
  CHECK(fixture.runtime().counters().builds == 0);
  CHECK(fixture.runtime().cache_stats().disk_hits == 1);
}

TEST_CASE("runtime: a process that ends next leaves its devices open, unless it built, and writes its files") {
  RuntimeFixture fixture;
  const std::filesystem::path model = fixture.folder() / "cache" / "selector.model";
  RunRequest request = small_conv2d();
  request.device = "alpha";
  // In children, which end by _exit(): what is left open is no leak of theirs.
  const auto run_and_leave = [&](Tier expected) -> std::string {
    const ChildEnd end = in_child([&]() -> std::string {
      const RunReport report = fixture.runtime().run(request);
      if (!report.status.ok()) return report.status.text();
      if (report.tier != expected) return "another tier";
      const long open = fixture.options("alpha").controls.use_count();
      fixture.runtime().leave_devices();
      fixture.restart();
      return fixture.options("alpha").controls.use_count() == open ? "left" : "closed";
    });
    CHECK(end.signal == 0);
    return end.said;
  };
  CHECK(run_and_leave(Tier::built) == "closed");
  REQUIRE(std::filesystem::remove(model));
  CHECK(run_and_leave(Tier::disk) == "left");
  CHECK(std::filesystem::exists(model));
}

namespace {

// The tiered cache, with a note of how often it was asked to trim its memory.
class TrimCountingCache final : public ForwardingCache {
 public:
  TrimCountingCache(std::unique_ptr<ProgramCache> cache, std::atomic<int>& trims)
      : ForwardingCache(std::move(cache)), trims_(trims) {}
  void trim_memory() noexcept override { ++trims_; }

 private:
  std::atomic<int>& trims_;
};

}  // namespace

TEST_CASE("runtime: the cache is asked to trim its memory before each job, also where the job only hits") {
  RuntimeFixture fixture;
  std::atomic<int> trims{0};
  const auto tiered = fixture.registry.cache("tiered");
  REQUIRE(tiered);
  REQUIRE(fixture.registry
              .add_cache("test", "trim_counting",
                         [&, make = *tiered](const CacheContext& context) -> Result<std::unique_ptr<ProgramCache>> {
                           auto cache = make(context);
                           if (!cache) return cache;
                           return std::unique_ptr<ProgramCache>(new TrimCountingCache(std::move(*cache), trims));
                         })
              .ok());
  fixture.config.cache.name = "trim_counting";
  RunRequest request = small_conv2d();
  request.device = "alpha";
  for (int run = 1; run <= 3; ++run) {
    CHECK(fixture.runtime().run(request).status.ok());
    CHECK(trims == run);
  }
  // It cannot be filled ahead as a whole; named jobs are warmed one after another all the same.
  WarmRequest warm;
  warm.device = "alpha";
  Conv2dSpec other = std::get<Conv2dSpec>(request.spec);
  other.k += 1;
  warm.jobs = {{"same", request.spec}, {"other", other}};
  const auto warmed = fixture.runtime().warm(warm);
  REQUIRE(warmed);
  CHECK(warmed->linked == 2);
  CHECK(warmed->built == 1);
  CHECK(warmed->ready == 2);
  warm.jobs.clear();
  CHECK(fixture.runtime().warm(warm)->found == 0);
  CHECK(*fixture.runtime().persist() == 0);
}

TEST_CASE("runtime: persist stores what the selector has learned") {
  RuntimeFixture fixture;
  Told told;
  ToldSelector::serve(fixture, told);
  CHECK(fixture.runtime().run(small_conv2d()).status.ok());
  CHECK(told.saves == 0);
  REQUIRE(fixture.runtime().persist());
  CHECK(told.saves == 1);
}

namespace {

// The tiered cache, with what it was told of runs.
struct RecordedRun {
  std::string label;
  Measurement measurement;
  double gflops = 0;
};

class RunTellingCache final : public ForwardingCache {
 public:
  RunTellingCache(std::unique_ptr<ProgramCache> cache, std::vector<RecordedRun>& runs)
      : ForwardingCache(std::move(cache)), runs_(runs) {}
  void record(const ProgramKey& key, const Device& device, const Measurement& measurement,
              double gflops) noexcept override {
    runs_.push_back({key.label, measurement, gflops});
    ForwardingCache::record(key, device, measurement, gflops);
  }

 private:
  std::vector<RecordedRun>& runs_;
};

}  // namespace

TEST_CASE("runtime: the cache is told of a job's first run and of its steady ones, each with its rate") {
  RuntimeFixture fixture;
  std::vector<RecordedRun> told;
  const auto tiered = fixture.registry.cache("tiered");
  REQUIRE(tiered);
  REQUIRE(fixture.registry
              .add_cache("test", "run_telling",
                         [&, make = *tiered](const CacheContext& context) -> Result<std::unique_ptr<ProgramCache>> {
                           auto cache = make(context);
                           if (!cache) return cache;
                           return std::unique_ptr<ProgramCache>(new RunTellingCache(std::move(*cache), told));
                         })
              .ok());
  fixture.config.cache.name = "run_telling";
  fixture.options("alpha").build_time = std::chrono::seconds(1);
  RunRequest request = small_conv2d();
  request.device = "alpha";
  request.repeat = 3;
  const RunReport report = fixture.runtime().run(request);
  REQUIRE(report.status.text() == "ok");
  CHECK(report.build_ns >= 1'000'000'000);
  REQUIRE(told.size() == 2);
  CHECK(told[0].measurement.first_run);
  CHECK(told[0].measurement.build_ns < 1'000'000'000);  // it was built before it ran
  CHECK_FALSE(told[1].measurement.first_run);
  for (const RecordedRun& run : told) {
    CHECK(run.label == "small/forwarded");
    REQUIRE(run.measurement.wall_ns > 0);
    CHECK(run.gflops == Approx(report.flops / static_cast<double>(run.measurement.wall_ns)));
  }
  request.repeat = 1;
  REQUIRE(fixture.runtime().run(request).status.text() == "ok");
  REQUIRE(told.size() == 3);
  CHECK_FALSE(told[2].measurement.first_run);
  fixture.controls("alpha").fail_at = fixture.controls("alpha").submits + 1;
  CHECK(fixture.runtime().run(request).status.code == StatusCode::internal);
  CHECK(told.size() == 3);
}

TEST_CASE("runtime: a request is checked with its programs, and nothing runs") {
  RuntimeFixture fixture;
  RunRequest request = small_conv2d();
  request.device = "alpha";
  const RunReport report = fixture.runtime().check(request);
  CHECK(report.status.text() == "ok");
  CHECK(report.device.id == "alpha");
  CHECK(report.variant == "forwarded");
  CHECK(report.tier == Tier::built);
  CHECK(report.keys.size() == 1);
  CHECK(report.runs == 0);
  CHECK(fixture.controls("alpha").builds == 1);
  CHECK(fixture.controls("alpha").runs == 0);
  CHECK(fixture.runtime().check(request).tier == Tier::memory);
  fixture.controls("alpha").fail_build = true;
  std::get<Conv2dSpec>(request.spec).activation = Activation::relu;
  CHECK(fixture.runtime().check(request).status.code == StatusCode::invalid_argument);
  request.tensors.clear();
  CHECK(fixture.runtime().check(request).status.message == "0 tensors given, expected 3");
}

TEST_CASE("runtime: a device is opened ahead by its id, and all of them as auto") {
  RuntimeFixture fixture;
  Runtime& runtime = fixture.runtime();
  const auto holders = [&](const char* device) { return fixture.options(device).controls.use_count(); };
  runtime.open_ahead("nonsense");  // its job tells
  CHECK(holders("beta") == holders("alpha"));
  runtime.open_ahead("beta");
  CHECK(holders("beta") == holders("alpha") + 1);
  const std::string all = GENERATE(as<std::string>(), "", "auto");
  runtime.open_ahead(all);
  CHECK(holders("beta") == holders("alpha"));
}

TEST_CASE("runtime: a build that fails is the job's failure, not the device's") {
  RuntimeFixture fixture;
  fixture.controls("alpha").fail_build = true;
  RunRequest request = small_conv2d();
  request.device = "alpha";
  const RunReport report = fixture.runtime().run(request);
  CHECK(report.status.code == StatusCode::invalid_argument);
  CHECK(report.device.id == "alpha");
  fixture.controls("alpha").fail_build = false;
  // What a compiler refused it would refuse again: it is not asked. Another program is built there.
  CHECK(fixture.runtime().run(request).status.message == report.status.message);
  CHECK(fixture.runtime().cache_stats().negative_hits == 1);
  std::get<Conv2dSpec>(request.spec).activation = Activation::relu;
  CHECK(fixture.runtime().run(request).status.ok());
}

TEST_CASE("runtime: warming jobs builds each program once, at most as many as asked, and names what does not fit") {
  RuntimeFixture fixture;
  Runtime& runtime = fixture.runtime();
  WarmRequest warm;
  warm.device = "alpha";
  const KernelSpec conv = small_conv2d().spec, product = small_gemm().spec;
  UserKernelSpec foreign;  // in a language that no generator writes
  foreign.path = foreign.text = "add_one";
  foreign.dialect = Dialect::glsl;
  foreign.bindings = {{Access::read_write, 64}};
  warm.jobs = {{"first", conv}, {"foreign", foreign}, {"same", conv}, {"product", product}};
  warm.most = 1;
  const auto one = runtime.warm(warm);
  REQUIRE(one);
  CHECK(one->found == 1);
  CHECK(one->built == 1);
  CHECK(one->ready == 1);
  CHECK(one->unfitted == std::vector<std::string>{"foreign"});
  warm.most = 9;
  const auto all = runtime.warm(warm);
  REQUIRE(all);
  CHECK(all->found == 2);
  CHECK(all->linked == 2);
  CHECK(all->built == 1);
  CHECK(all->failed == 0);
  CHECK(fixture.controls("alpha").builds == 2);

  fixture.controls("alpha").fail_build = true;
  Conv2dSpec other = std::get<Conv2dSpec>(conv);
  other.activation = Activation::relu;
  warm.jobs = {{"other", other}, {"first", conv}};
  const auto failed = runtime.warm(warm);
  REQUIRE(failed);
  CHECK(failed->linked == 1);
  CHECK(failed->failed == 1);
  CHECK_THAT(failed->first_failure.message, Contains("program 'other/forwarded'") && Contains("told to fail"));
}

TEST_CASE("runtime: requests that do not fit their spec are told both sides") {
  RuntimeFixture fixture;
  RunRequest request = small_conv2d();
  request.tensors.pop_back();
  CHECK_THAT(fixture.runtime().run(request).status.message, Contains("2 tensors given, expected 3"));
  request = small_conv2d();
  request.tensors[2].host = HostTensor::create(DType::f32, {1, 3, 6, 5}).value();
  CHECK_THAT(fixture.runtime().run(request).status.message, Contains("360 bytes, expected 432"));
  request = small_conv2d();
  std::get<Conv2dSpec>(request.spec).groups = 3;
  CHECK_THAT(fixture.runtime().run(request).status.message, Contains("groups = 3"));
}

TEST_CASE("runtime: a run of a variant that was asked for is no figure of the program that usually runs") {
  Told told;
  RuntimeFixture fixture;
  ToldSelector::serve(fixture, told);
  RunRequest request = small_conv2d();
  request.device = "alpha";
  request.variant = "slow";
  const RunReport slow = fixture.runtime().run(request);
  REQUIRE(slow.status.text() == "ok");
  CHECK(slow.variant == "slow");
  CHECK(slow.median.first_run);
  CHECK_FALSE(fixture.runtime().run(request).median.first_run);
  CHECK(fixture.learned == 2);  // the generator knows its variants
  CHECK(told.runs.empty());
  request.variant.clear();
  REQUIRE(fixture.runtime().run(request).status.text() == "ok");
  REQUIRE(told.runs.size() == 1);
  CHECK(told.runs[0].measurement.first_run);
}

TEST_CASE("runtime: after a run that failed the next one is the first") {
  Told told;
  RuntimeFixture fixture;
  ToldSelector::serve(fixture, told);
  RunRequest request = small_conv2d();
  request.device = "alpha";
  fixture.controls("alpha").fail_at = 1;
  CHECK(fixture.runtime().run(request).status.code == StatusCode::internal);
  for (int run = 0; run < 2; ++run) REQUIRE(fixture.runtime().run(request).status.text() == "ok");
  REQUIRE(told.runs.size() == 3);
  CHECK(told.runs[1].measurement.first_run);
  CHECK_FALSE(told.runs[2].measurement.first_run);
}

TEST_CASE("runtime: repeated runs are counted and lie between their extremes") {
  RuntimeFixture fixture;
  RunRequest request = small_conv2d();
  request.repeat = 7;
  const RunReport report = fixture.runtime().run(request);
  REQUIRE(report.status.text() == "ok");
  CHECK(report.runs == 7);
  CHECK(report.wall_min_ns <= report.median.wall_ns);
  CHECK(report.median.wall_ns <= report.wall_max_ns);
  CHECK(report.wall_min_ns > 0);
  CHECK_FALSE(report.selected_because.empty());
}

TEST_CASE("runtime: a rate above the device's roof is an error, never a figure") {
  RuntimeFixture fixture;
  fixture.options("alpha").info.roof_gflops = 1e-9;
  RunRequest request = small_conv2d();
  request.device = "alpha";
  request.repeat = 3;
  const RunReport report = fixture.runtime().run(request);
  CHECK(report.status.code == StatusCode::internal);
  CHECK_THAT(report.status.message, Contains("alpha, whose roof is"));
  CHECK(report.runs == 0);
  CHECK(report.first_output_ns == 0);
  CHECK(report.median.wall_ns == 0);
  CHECK(report.median.device_ns == 0);
  CHECK(report.wall_min_ns == 0);
  CHECK(report.wall_max_ns == 0);
  CHECK(fixture.learned == 0);  // by the generator
  request.device = "beta";
  CHECK(fixture.runtime().run(request).status.text() == "ok");
  CHECK(fixture.learned == 3);
}

TEST_CASE("runtime: a job that takes too long names its limit and where it was set") {
  RuntimeFixture fixture;
  fixture.config.executor.timeout = std::chrono::nanoseconds(1);
  RunRequest request = small_conv2d();
  const auto message = [&] {  // of a job that does not end by itself
    for (const char* device : {"alpha", "beta"}) fixture.controls(device).run.close();
    const RunReport report = fixture.runtime().run(request);
    for (const char* device : {"alpha", "beta"}) fixture.controls(device).run.open();
    return report.status.message;
  };
  SECTION("the default") {
    CHECK_THAT(message(), Contains("job 'small' took longer than 1 ns ([executor] timeout, the default)"));
  }
  SECTION("a file") {
    fixture.config.origins["executor.timeout"].place = {"some.toml", 11, 3};
    CHECK_THAT(message(), Contains("([executor] timeout, some.toml:11)"));
  }
  SECTION("the environment") {
    fixture.config.origins["executor.timeout"].place = {"KILN_EXECUTOR_TIMEOUT", 0, 0};
    CHECK_THAT(message(), Contains("([executor] timeout, KILN_EXECUTOR_TIMEOUT)"));
  }
  SECTION("a job without a name") {
    request.name.clear();
    CHECK_THAT(message(), Contains("job took longer than 1 ns ("));
  }
  SECTION("the request's own") {
    request.timeout = std::chrono::nanoseconds(2);
    CHECK_THAT(message(), Contains("than 2 ns (the timeout of its request)"));
  }
}

TEST_CASE("runtime: a job over its deadline is a timeout, and the next one is served") {
  RuntimeFixture fixture;
  RunRequest request = small_conv2d();
  request.device = "alpha";
  request.timeout = std::chrono::milliseconds(20);
  fixture.controls("alpha").run.close();
  const RunReport late = fixture.runtime().run(request);
  CHECK(late.status.code == StatusCode::timeout);
  fixture.controls("alpha").run.open();
  RunRequest next = small_conv2d();
  next.device = "alpha";
  CHECK(fixture.runtime().run(next).status.text() == "ok");
}

TEST_CASE("runtime: a stop flag ends a job between waits") {
  RuntimeFixture fixture;
  std::atomic<bool> stop{false};
  RunRequest request = small_conv2d();
  request.device = "alpha";
  request.stop = &stop;
  fixture.controls("alpha").run.close();
  std::jthread stopper([&] {
    (void)fixture.controls("alpha").run.await_waiting(1, Deadline::after(std::chrono::seconds(30)));
    stop = true;
  });
  const RunReport report = fixture.runtime().run(request);
  CHECK(report.status.code == StatusCode::cancelled);
  CHECK_THAT(report.status.message, Contains("stopped"));
  fixture.controls("alpha").run.open();
}

TEST_CASE("runtime: what a job left to the device is not written to its tensors by anybody else") {
  const bool stopped = GENERATE(false, true);
  CAPTURE(stopped);
  RuntimeFixture fixture;
  fixture.options("alpha").info.dialects = {Dialect::library, Dialect::opencl_c};
  support::FixtureGate& gate = fixture.controls("alpha").run;
  UserKernelSpec spec;
  spec.path = "add_one.cl";
  spec.text = "add_one";
  spec.dialect = Dialect::opencl_c;
  spec.bindings = {{Access::read_write, 64}};
  const auto tensor = HostTensor::create(DType::f32, {16}).value();
  std::atomic<bool> stop{false};
  RunRequest request;
  request.spec = spec;
  request.device = "alpha";
  request.tensors = {{tensor, nullptr}};
  request.repeat = 2;
  request.stop = &stop;
  request.timeout = std::chrono::seconds(stopped ? 60 : 2);
  std::promise<void> second;
  request.progress = [&](std::uint32_t) {
    gate.close();
    second.set_value();
    return true;
  };
  std::jthread device([&] {
    second.get_future().wait();
    if (!gate.await_waiting(1, Deadline::after(std::chrono::seconds(30)))) return;
    tensor->as<float>()[0] = 7;  // as a device that is at it
    stop = stopped;
  });
  const RunReport report = fixture.runtime().run(request);
  device.join();
  CHECK(report.status.code == (stopped ? StatusCode::cancelled : StatusCode::timeout));
  CHECK(report.runs == 1);
  CHECK(tensor->as<float>()[0] == 7);
  gate.open();
}

TEST_CASE("runtime: a request asks once whether it may run, when its programs are ready and nothing has run") {
  RuntimeFixture fixture;
  RunRequest request = small_conv2d();
  request.device = "alpha";
  request.repeat = 2;
  int asked = 0;
  std::uint64_t runs_then = 99, builds_then = 0;
  request.may_run = [&] {
    ++asked;
    runs_then = fixture.controls("alpha").runs;
    builds_then = fixture.runtime().cache_stats().builds;
    return true;
  };
  CHECK(fixture.runtime().run(request).status.text() == "ok");
  CHECK(asked == 1);
  CHECK(runs_then == 0);
  CHECK(builds_then == 1);
  const std::uint64_t runs = fixture.controls("alpha").runs;
  request.may_run = [] { return false; };
  const RunReport refused = fixture.runtime().run(request);
  CHECK(refused.status.code == StatusCode::cancelled);
  CHECK(refused.runs == 0);
  CHECK(fixture.controls("alpha").runs == runs);
}

TEST_CASE("runtime: what is stopped or late before the device has begun it never runs") {
  RuntimeFixture fixture;
  fixture.options("alpha").queue = support::FixtureQueue::inside_submit;  // so that a second job waits before it
  support::FixtureControls& alpha = fixture.controls("alpha");
  RunRequest first = small_conv2d();
  first.device = "alpha";
  REQUIRE(fixture.runtime().run(first).status.text() == "ok");
  const std::uint64_t before = alpha.submits;
  alpha.run.close();
  auto ahead = std::async(std::launch::async, [&] { return fixture.runtime().run(first).status.text(); });
  REQUIRE(alpha.run.await_waiting(1, Deadline::after(std::chrono::seconds(30))));

  RunRequest behind = small_conv2d();
  behind.device = "alpha";
  SECTION("stopped") {
    std::atomic<bool> stop{false};
    behind.stop = &stop;
    std::jthread stopper([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));  // it waits in its slot by then
      stop = true;
    });
    CHECK(fixture.runtime().run(behind).status.code == StatusCode::cancelled);
  }
  SECTION("late") {
    behind.timeout = std::chrono::milliseconds(100);
    CHECK(fixture.runtime().run(behind).status.code == StatusCode::timeout);
  }
  alpha.run.open();
  CHECK(ahead.get() == "ok");
  REQUIRE(fixture.runtime().run(first).status.text() == "ok");
  CHECK(alpha.submits == before + 2);  // of the two that somebody waited for
}

TEST_CASE("runtime: many threads run at once and all are verified") {
  RuntimeFixture fixture;
  (void)fixture.runtime();
  std::atomic<int> good{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&fixture, &good, i] {
        RunRequest request = small_conv2d();
        request.device = i % 2 == 0 ? "alpha" : "beta";
        for (int run = 0; run < 10; ++run) good += fixture.runtime().run(request).verified == true ? 1 : 0;
      });
    }
  }
  CHECK(good == 80);
  CHECK(fixture.runtime().counters().builds <= 2);
}
