// warm: what lies on disk is linked, then dispatched over nothing, those first that spare most; nothing is built twice.
#include "runtime/warmup.hpp"

#include <catch2/catch.hpp>

#include "core/cache/process/builds_at_once.hpp"
#include "core/cache/process/shared.hpp"
#include "core/cache/rendezvous.hpp"
#include "core/cache/workplace.hpp"
#include "support/forwarding_cache.hpp"
#include "support/in_child.hpp"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace kiln::test {
namespace {

void keep_three(Workplace& place, SyntheticDevice& device) {
  const auto cache = place.open();
  for (const char* text : {"one", "two", "three"}) REQUIRE(acquire(*cache, text, device));
}

// As the jobs of a file name them: nothing of it lies on disk.
std::vector<KeptProgram> wanted(int count, const SyntheticDevice& device) {
  std::vector<KeptProgram> programs;
  for (int i = 0; i < count; ++i) {
    const std::string text = "program " + std::to_string(i);
    programs.push_back({key_for(text, device), source_of(text), 0});
  }
  return programs;
}

// A cache that cannot be filled ahead, with the names of what it is asked for.
class OneByOne final : public ForwardingCache {
 public:
  using ForwardingCache::ForwardingCache;
  Result<Acquired> get_or_build(const ProgramKey& key, const KernelSource& source, Device& device) noexcept override {
    asked.push_back(key.label);
    return ForwardingCache::get_or_build(key, source, device);
  }

  std::vector<std::string> asked;
};

}  // namespace

TEST_CASE("runtime::warm: every kept program is linked from disk and made ready", "[runtime][warm]") {
  Workplace place;
  SyntheticDevice device;
  keep_three(place, device);
  const auto cache = place.open();
  std::vector<std::size_t> told;
  WarmRequest request;
  request.progress = [&](std::size_t done, std::size_t of) {
    told.push_back(done);
    CHECK(of == 3);
  };
  const WarmReport report = warm_programs(cache->kept(device, request.most), device, *cache, request);
  CHECK(report.found == 3);
  CHECK(report.linked == 3);
  CHECK(report.ready == 3);
  CHECK(report.built == 0);
  CHECK(report.failed == 0);
  CHECK(told == std::vector<std::size_t>{1, 2, 3});
  CHECK(device.builds == 3);
  CHECK(device.dispatched_nothing == 3);
  CHECK(acquire(*cache, "two", device)->tier == Tier::memory);
}

TEST_CASE("runtime::warm: those that spare most come first, and the rest stays where it is", "[runtime][warm]") {
  Workplace place;
  SyntheticDevice device;
  {
    const auto cache = place.open();
    for (const char* text : {"one", "two", "three"}) REQUIRE(acquire(*cache, text, device));
    Measurement slow;
    slow.first_run = true;
    slow.wall_ns = 10'000'000'000;
    cache->record(key_for("two", device), device, slow, 0);
  }
  const auto cache = place.open();
  WarmRequest request;
  request.most = 1;
  const WarmReport report = warm_programs(cache->kept(device, request.most), device, *cache, request);
  CHECK(report.found == 1);
  CHECK(report.linked == 1);
  CHECK(acquire(*cache, "two", device)->tier == Tier::memory);
  CHECK(acquire(*cache, "one", device)->tier == Tier::disk);
}

TEST_CASE("runtime::warm: it ends when it is told to, and a damaged entry is left out", "[runtime][warm]") {
  Workplace place;
  SyntheticDevice device;
  keep_three(place, device);
  const auto files = place.files(".bin");
  std::filesystem::resize_file(files.front(), 40);
  const auto cache = place.open();
  WarmRequest request;
  CHECK(cache->kept(device, 10).size() == 2);
  std::atomic<bool> stop{false};
  request.stop = &stop;
  request.progress = [&](std::size_t, std::size_t) { stop = true; };
  const WarmReport report = warm_programs(cache->kept(device, request.most), device, *cache, request);
  CHECK(report.found == 2);
  CHECK(report.linked == 1);
  CHECK(report.failed == 0);
}

TEST_CASE("runtime::warm: an empty cache is nothing to warm", "[runtime][warm]") {
  Workplace place;
  SyntheticDevice device;
  const auto cache = place.open();
  const WarmReport report = warm_programs(cache->kept(device, 10), device, *cache, {});
  CHECK(report.found == 0);
  CHECK(report.first_failure.ok());
}

TEST_CASE("runtime::warm: two processes on an empty cache build each program once, and at one time",
          "[runtime][warm]") {
  constexpr int count = 40;
  struct Both : BuildsAtOnce {
    std::atomic<int> ready{0}, dispatched{0};
  };
  Workplace place;
  Shared<Both> both;
  const auto warm = [&]() -> std::string {
    SyntheticDevice device;
    device.on_build = [&](const KernelSource&) { both->build(std::chrono::milliseconds(5)); };
    const auto cache = place.open();
    ++both->ready;
    const Deadline patience = Deadline::after(std::chrono::seconds(60));
    while (both->ready < 2 && !patience.passed()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const WarmReport report = warm_programs(wanted(count, device), device, *cache, {});
    both->dispatched += device.dispatched_nothing;
    if (report.linked != count || report.ready != count || report.failed != 0) return "not all of them are ready";
    return report.built == static_cast<std::size_t>(device.builds) ? "" : "what was loaded is said to be built";
  };
  Child first(warm);
  Child second(warm);
  CHECK(first.wait().said == "");
  CHECK(second.wait().said == "");
  CHECK(both->builds == count);
  CHECK(both->dispatched == 2 * count);
  CHECK(both->most == 2);
}

TEST_CASE("runtime::warm: as many threads build at one time as are asked for, and progress is told in order",
          "[runtime][warm]") {
  Workplace place;
  SyntheticDevice device;
  Rendezvous both(2);
  std::atomic<int> met{0};
  device.on_build = [&](const KernelSource&) {
    if (device.builds <= 2) met += both.meet() ? 1 : 0;
  };
  const auto cache = place.open();
  std::vector<std::size_t> told;
  WarmRequest request;
  request.progress = [&](std::size_t done, std::size_t) { told.push_back(done); };
  const WarmReport report = warm_programs(wanted(6, device), device, *cache, request, 2);
  CHECK(met == 2);
  CHECK(report.built == 6);
  CHECK(report.ready == 6);
  CHECK(told == std::vector<std::size_t>{1, 2, 3, 4, 5, 6});
}

TEST_CASE("runtime::warm: a device that hangs at a first dispatch is waited for so long and no longer",
          "[runtime][warm]") {
  Workplace place;
  SyntheticDevice device;
  device.hangs_after = 2;
  const auto cache = place.open();
  const auto patience = std::chrono::milliseconds(20);
  const WarmReport report = warm_programs(wanted(50, device), device, *cache, {}, 2, {}, patience);
  CHECK(report.ready == 2);
  CHECK(report.failed == 1);
  CHECK(report.first_failure.code == StatusCode::timeout);
  CHECK_THAT(report.first_failure.message, Catch::Contains("program '") && Catch::Contains("it hangs"));
  CHECK(report.linked < 12);  // a few builds go before the first dispatches
  CHECK(device.dispatched_nothing == 3);
}

TEST_CASE("runtime::warm: several threads end too when they are told to, and what they had begun is counted",
          "[runtime][warm]") {
  Workplace place;
  SyntheticDevice device;
  const auto cache = place.open();
  std::atomic<bool> stop{false};
  WarmRequest request;
  request.stop = &stop;
  request.progress = [&](std::size_t, std::size_t) { stop = true; };
  const WarmReport report = warm_programs(wanted(50, device), device, *cache, request, 2);
  CHECK(report.found == 50);
  CHECK(report.linked >= 1);
  CHECK(report.linked < 12);  // a few builds go before the first dispatch, of which progress is told
  CHECK(report.linked == static_cast<std::size_t>(device.builds));
  CHECK(report.ready >= 1);
  CHECK(report.ready <= 2);
  CHECK(report.failed == 0);
  const int builds = device.builds;
  CHECK(warm_programs(wanted(50, device), device, *cache, request, 2).linked == 0);
  CHECK(device.builds == builds);
}

TEST_CASE("runtime::warm: a cache that cannot be filled ahead is asked for one program at a time, until told to stop",
          "[runtime][warm]") {
  Workplace place;
  SyntheticDevice device;
  OneByOne cache(place.open());
  const std::vector<KeptProgram> programs = wanted(4, device);
  std::vector<std::string> labels;
  for (const KeptProgram& program : programs) labels.push_back(program.key.label);
  std::atomic<bool> stop{false};
  WarmRequest request;
  request.stop = &stop;
  const WarmReport report = warm_programs(programs, device, cache, request, 2, [&](const WarmReport& so_far) {
    if (so_far.linked == 2) stop = true;
  });
  CHECK(report.found == 4);
  CHECK(report.linked == 2);
  CHECK(report.built == 2);
  CHECK(report.failed == 0);
  CHECK(cache.asked == std::vector<std::string>(labels.begin(), labels.begin() + 2));
  CHECK(device.builds == 2);

  cache.asked.clear();
  const WarmReport whole = warm_programs(programs, device, cache, {}, 2);
  CHECK(whole.linked == 4);
  CHECK(whole.built == 2);
  CHECK(whole.ready == 4);
  CHECK(cache.asked == labels);
}

}  // namespace kiln::test
