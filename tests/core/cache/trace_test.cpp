// What the cache tells a trace: every step of finding and making a program, and nothing of a hit in memory.
#include "cache/tiered_cache.hpp"
#include "core/cache/workplace.hpp"
#include "support/told_trace.hpp"

#include <catch2/catch.hpp>

namespace kiln::test {
namespace {

using Names = std::vector<std::string>;

std::unique_ptr<TieredCache> open_traced(Workplace& place, TraceSink* trace) {
  return TieredCache::create({{}, place.config, OwnThreads::yes, trace}).value();
}

bool lies_within(const ToldEvent& inner, const ToldEvent& outer) {
  return inner.begin_ns >= outer.begin_ns && inner.end_ns && outer.end_ns && *inner.end_ns <= *outer.end_ns;
}

TEST_CASE("cache::trace: a build and a hit on disk are told step by step, each within its lookup") {
  Workplace place;
  SyntheticDevice device;
  {
    ToldTrace trace;
    const auto cache = open_traced(place, &trace);
    REQUIRE(acquire(*cache, "one", device));
    CHECK(trace.names(TraceArea::cache) == Names{"disk read", "acquire lease", "store", "lookup"});
    CHECK(trace.names(TraceArea::build) == Names{"build", "serialize"});
    CHECK(trace.first("lookup").words.at("answer") == "built");
    CHECK(trace.first("lookup").words.at("program") == "the label of one");
    CHECK(trace.first("lookup").words.at("key") == key_for("one", device).digest.hex().substr(0, 12));
    for (const ToldEvent& event : trace.events()) CHECK(lies_within(event, trace.first("lookup")));
  }
  ToldTrace trace;
  const auto cache = open_traced(place, &trace);
  REQUIRE(acquire(*cache, "one", device));
  CHECK(trace.names(TraceArea::cache) == Names{"disk read", "authenticate", "inflate", "load", "lookup"});
  CHECK(trace.names(TraceArea::build).empty());
  CHECK(trace.first("lookup").words.at("answer") == "disk");
  CHECK(trace.first("disk read").numbers.at("bytes") > 0);
  CHECK(trace.first("inflate").numbers.at("bytes") > trace.first("load").numbers.at("bytes"));  // with names
  for (std::size_t i = 1; i + 1 < trace.events().size(); ++i) {
    CHECK(trace.events()[i].begin_ns >= trace.events()[i - 1].end_ns);
  }
  for (const ToldEvent& event : trace.events()) CHECK(lies_within(event, trace.first("lookup")));
}

TEST_CASE("cache::trace: a hit in memory is told to nobody") {
  Workplace place;
  SyntheticDevice device;
  ToldTrace trace;
  for (TraceSink* const sink : {static_cast<TraceSink*>(nullptr), static_cast<TraceSink*>(&trace)}) {
    const auto cache = open_traced(place, sink);
    REQUIRE(acquire(*cache, "one", device));
    const ProgramKey key = key_for("one", device);
    const KernelSource source = source_of("one");
    const std::size_t told = trace.events().size();
    for (int i = 0; i < 1000; ++i) (void)cache->get_or_build(key, source, device);
    CHECK(trace.events().size() == told);
    CHECK(cache->stats().memory_hits == 1000);
  }
  CHECK(trace.names(TraceArea::cache).back() == "lookup");  // of the second cache's one hit on disk
}

TEST_CASE("cache::trace: what is refused, what fails and what has to go are told with their reasons") {
  Workplace place;
  SyntheticDevice device;
  {
    const auto cache = open_traced(place, nullptr);
    REQUIRE(acquire(*cache, "one", device));
  }
  ToldTrace trace;
  const auto cache = open_traced(place, &trace);
  device.load_answers = StatusCode::corrupt;
  REQUIRE(acquire(*cache, "one", device));
  CHECK(trace.first("load").words.at("refused") == "corrupt");
  const ToldEvent rejected = trace.first("rejected");
  CHECK_FALSE(rejected.end_ns.has_value());
  CHECK(rejected.words.at("reason") == "refused");
  CHECK(rejected.words.at("program") == "the label of one");

  device.fail_builds = true;
  CHECK_FALSE(acquire(*cache, "two", device));
  CHECK(trace.events().back().name == "lookup");
  CHECK(trace.events().back().words.at("answer") == "failed");

  device.fail_builds = false;
  device.load_answers = StatusCode::ok;
  place.config.max_disk = 40'000;
  place.config.compression = "none";
  ToldTrace bounded;
  const auto small = open_traced(place, &bounded);
  for (int i = 0; i < 60; ++i) REQUIRE(acquire(*small, std::string(800, 'x') + std::to_string(i), device));
  REQUIRE(small->stats().disk_evictions > 0);
  CHECK(bounded.first("evicted from disk").numbers.at("programs") >= 1);
  CHECK(bounded.first("evicted from disk").numbers.at("max_disk_bytes") == 40'000);
}

}  // namespace
}  // namespace kiln::test
