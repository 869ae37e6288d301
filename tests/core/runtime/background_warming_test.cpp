// [cache] warm: done behind the jobs, which go first; throttled by memory, ended with its owner.
#include "runtime/warmup.hpp"

#include "core/cache/workplace.hpp"
#include "core/runtime/runtime_fixture.hpp"
#include "support/in_child.hpp"

#include <catch2/catch.hpp>

#include <poll.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <kiln/buffer.hpp>

#include <algorithm>
#include <fstream>
#include <latch>
#include <thread>

namespace kiln::test {
namespace {

using std::chrono::milliseconds;

struct Behind : Workplace {
  std::shared_ptr<SyntheticDevice> device = std::make_shared<SyntheticDevice>();
  std::unique_ptr<ProgramCache> cache;
  WarmingRules rules;

  explicit Behind(int programs) {
    {
      const auto before = open();
      for (int i = 0; i < programs; ++i) REQUIRE(acquire(*before, "p" + std::to_string(i), *device));
    }
    config.warm = "all";
    cache = open();
    rules.memory = {temporary.path() / "stalls", temporary.path() / "none", temporary.path() / "none"};
    rules.grace = milliseconds(1);
    rules.look = milliseconds(1);
  }
  // As a whole: a reader shall not meet a file that is being written.
  void memory_stalls(double percent) {
    const auto written = temporary.path() / "stalls.new";
    std::ofstream(written) << "some avg10=" << percent << " avg60=0.00 avg300=0.00 total=0\n"
                           << "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n";
    std::filesystem::rename(written, rules.memory.stalls);
  }
  std::unique_ptr<BackgroundWarming> start() {
    return std::make_unique<BackgroundWarming>(
        config, [this] { return std::vector<std::shared_ptr<Device>>{device}; }, *cache, rules);
  }
};

// Patience for two busy cores, not a bound on how fast it is.
template <class Condition>
bool comes_true(const Condition& condition) {
  for (int i = 0; i < 20'000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return false;
}

bool done(const BackgroundWarming& warming) {
  return comes_true([&] { return !warming.state().running; });
}

}  // namespace

TEST_CASE("runtime::background_warming: without jobs everything is linked and dispatched", "[runtime][warm]") {
  Behind place(5);
  const auto warming = place.start();
  REQUIRE(done(*warming));
  CHECK(warming->state().done == 5);
  CHECK(warming->state().of == 5);
  CHECK(warming->state().linked == 5);
  CHECK(warming->state().ready == 5);
  CHECK(warming->state().built == 0);
  CHECK(warming->state().failed == 0);
  CHECK(place.device->dispatched_nothing == 5);
  CHECK(place.device->builds == 5);
  CHECK(acquire(*place.cache, "p3", *place.device)->tier == Tier::memory);
}

TEST_CASE("runtime::background_warming: linked, ready, built and failed are told apart", "[runtime][warm]") {
  Behind place(4);
  place.device->on_load = [&](const KernelSource& source) {
    place.device->load_answers = source.text < "p2" ? StatusCode::ok : StatusCode::corrupt;
  };
  place.device->refuses = [](const std::string& text) { return text == "p3"; };
  const auto warming = place.start();
  REQUIRE(done(*warming));
  const WarmingState state = warming->state();
  CHECK(state.done == 4);
  CHECK(state.linked == 3);
  CHECK(state.ready == 3);
  CHECK(state.built == 1);   // p2: its entry was refused
  CHECK(state.failed == 1);  // p3: so was its source
}

TEST_CASE("runtime::background_warming: top, labels, and never more than memory takes", "[runtime][warm]") {
  Behind place(5);
  std::size_t expected = 0;
  SECTION("top") {
    place.config.warm = "top";
    place.config.warm_top = 2;
    expected = 2;
  }
  SECTION("labels") {
    place.config.warm = "labels";
    place.config.warm_labels = {"the label of p1", "the label of p4", "the label of nobody", "the label"};
    expected = 2;
  }
  SECTION("max_programs") {
    place.config.max_programs = 3;
    expected = 3;
  }
  SECTION("none") {
    place.config.warm = "none";
    place.config.warm_labels = {"the label of p1"};
  }
  SECTION("more labels than memory takes") {
    place.config.warm = "labels";
    place.config.warm_labels = {"the label of p1", "the label of p3", "the label of p4"};
    place.config.max_programs = 2;
    expected = 2;
  }
  const auto warming = place.start();
  REQUIRE(done(*warming));
  CHECK(warming->state().done == expected);
  CHECK(place.device->dispatched_nothing == static_cast<int>(expected));
}

TEST_CASE("runtime::background_warming: what a tuned winner has superseded comes last", "[runtime][warm]") {
  Behind place(0);
  const auto keep = [&](const std::string& text, const std::string& shape) {
    ProgramKey key = key_for(text, *place.device);
    key.purpose = {"conv2d", shape, text};
    REQUIRE(place.cache->get_or_build(key, source_of(text), *place.device));
    return key.digest;
  };
  keep("plain", "tuned shape");
  const Digest winner = keep("winner", "tuned shape");
  keep("other", "another shape");
  place.cache.reset();  // what is noted of them is written
  place.cache = place.open();
  TunedPrograms tuned;
  tuned.shapes.insert({"conv2d", "tuned shape"});
  tuned.winners.insert(winner);
  const auto variants = [&](const std::vector<KeptProgram>& programs) {
    std::vector<std::string> names;
    for (const KeptProgram& program : programs) names.push_back(program.key.purpose.variant);
    return names;
  };
  const auto all = variants(programs_to_warm(place.config, *place.cache, *place.device, tuned));
  REQUIRE(all.size() == 3);
  CHECK(all.back() == "plain");
  place.config.warm = "top";
  place.config.warm_top = 2;
  const auto top = variants(programs_to_warm(place.config, *place.cache, *place.device, tuned));
  REQUIRE(top.size() == 2);
  CHECK(std::ranges::find(top, "plain") == top.end());
  CHECK(programs_to_warm(place.config, *place.cache, *place.device).size() == 2);
}

TEST_CASE("runtime::background_warming: it waits for the first job as long as that takes", "[runtime][warm]") {
  Behind place(3);
  std::latch opened(1), go(1);
  BackgroundWarming warming(
      place.config,
      [&] {
        opened.count_down();
        go.wait();
        return std::vector<std::shared_ptr<Device>>{place.device};
      },
      *place.cache, place.rules);
  opened.wait();
  {
    const BackgroundWarming::Job running(&warming);
    go.count_down();
    std::this_thread::sleep_for(milliseconds(50));  // many times what it would need
    CHECK(place.device->dispatched_nothing == 0);
    CHECK(warming.state().running);
  }
  REQUIRE(done(warming));
  CHECK(warming.state().done == 3);
}

TEST_CASE("runtime::background_warming: jobs that never rest do not hold it up for ever", "[runtime][warm]") {
  Behind place(3);
  place.rules.most_wait = milliseconds(2);
  const auto warming = place.start();
  { const BackgroundWarming::Job first(warming.get()); }
  const BackgroundWarming::Job running(warming.get());
  REQUIRE(done(*warming));
  CHECK(warming->state().done == 3);
}

TEST_CASE("runtime::background_warming: where no thread is to be had nothing is warmed, and nothing runs",
          "[runtime][warm]") {
  const ChildEnd end = in_unprivileged_child([]() -> std::string {
    Behind place(1);
    const rlimit none{0, 0};
    if (setrlimit(RLIMIT_NPROC, &none) != 0) return "the limit cannot be set";
    const auto warming = place.start();
    if (warming->started().code != StatusCode::unavailable) return "it started: " + warming->started().text();
    if (warming->state().running) return "it says that it runs";
    return warming->state().done == 0 ? "" : "it warmed a program";
  });
  CHECK(end.said == "");
  CHECK(end.signal == 0);
}

TEST_CASE("runtime::background_warming: it pauses while memory is short", "[runtime][warm]") {
  Behind place(3);
  place.memory_stalls(50);
  const UniqueFd reads(inotify_init1(IN_CLOEXEC));
  REQUIRE(inotify_add_watch(reads.get(), place.rules.memory.stalls.c_str(), IN_CLOSE_NOWRITE) >= 0);
  const auto warming = place.start();
  pollfd until_read{reads.get(), POLLIN, 0};
  REQUIRE(poll(&until_read, 1, 20'000) == 1);  // milliseconds
  std::this_thread::sleep_for(milliseconds(20));
  CHECK(warming->state().running);
  CHECK(place.device->dispatched_nothing == 0);
  place.memory_stalls(7);  // between the bounds: as before
  std::this_thread::sleep_for(milliseconds(20));
  CHECK(place.device->dispatched_nothing == 0);
  place.memory_stalls(0);
  REQUIRE(done(*warming));
  CHECK(warming->state().done == 3);
}

TEST_CASE("runtime::background_warming: its end does not wait for more than the program in the works",
          "[runtime][warm]") {
  Behind place(50);
  std::latch loading(1), go(1);
  std::atomic<int> loads{0};
  place.device->on_load = [&](const KernelSource&) {
    if (loads++ == 0) {
      loading.count_down();
      go.wait();
    } else {
      std::this_thread::sleep_for(milliseconds(20));  // all of them: a second, in which its end has begun
    }
  };
  auto warming = place.start();
  loading.wait();
  std::thread ending([&] { warming.reset(); });
  std::this_thread::sleep_for(milliseconds(20));
  go.count_down();
  ending.join();
  CHECK(loads < 50);
}

TEST_CASE("runtime::background_warming: memory is short above the upper bound until it is below the lower one",
          "[runtime][warm]") {
  const PressureRules rules;
  const auto stalled = [](double percent) { return MemoryReading{percent, std::nullopt}; };
  CHECK_FALSE(memory_is_short({}, false, rules));
  CHECK_FALSE(memory_is_short({}, true, rules));
  CHECK_FALSE(memory_is_short({std::nullopt, GroupUse{0, 900}}, true, rules));

  struct Bound {
    MemoryReading reading;
    bool without, with;  // where memory was not short before, and where it was
  };
  const auto used = [](std::uint64_t bytes) { return MemoryReading{std::nullopt, GroupUse{1000, bytes}}; };
  const Bound bounds[] = {{stalled(4.99), false, false}, {stalled(5), false, true}, {stalled(9.99), false, true},
                          {stalled(10), true, true},     {used(849), false, false}, {used(850), false, true},
                          {used(949), false, true},      {used(950), true, true}};
  for (const Bound& bound : bounds) {
    CAPTURE(bound.reading.stalled_percent.value_or(-1), bound.reading.group.value_or(GroupUse()).used);
    CHECK(memory_is_short(bound.reading, false, rules) == bound.without);
    CHECK(memory_is_short(bound.reading, true, rules) == bound.with);
  }
}

TEST_CASE("runtime::background_warming: a runtime does what [cache] warm asks for, and jobs are as they were",
          "[runtime][warm]") {
  RuntimeFixture fixture;
  RunRequest request = small_conv2d();
  request.device = "alpha";
  REQUIRE(fixture.runtime().run(request).status.ok());
  CHECK_FALSE(fixture.runtime().warming().running);
  fixture.restart();
  fixture.config.cache.warm = "all";
  fixture.config.device.prefer = "alpha";
  Runtime& runtime = fixture.runtime();
  const RunReport report = runtime.run(request);
  CHECK(report.status.ok());
  REQUIRE(comes_true([&] { return !runtime.warming().running; }));
  CHECK(runtime.warming().done == runtime.warming().of);
  CHECK(runtime.run(request).status.ok());
}

}  // namespace kiln::test
