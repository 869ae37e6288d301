// warm: what lies on disk is linked, then dispatched over nothing, those first that spare most; nothing is built twice.
#include "runtime/warming/warming.hpp"

#include <catch2/catch.hpp>

#include "core/cache/workplace.hpp"

namespace kiln::test {
namespace {

void keep_three(Workplace& place, SyntheticDevice& device) {
  const auto cache = place.open();
  for (const char* text : {"one", "two", "three"}) REQUIRE(acquire(*cache, text, device));
}

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
    cache->record(key_for("two", device), slow, 0);
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

}  // namespace kiln::test
