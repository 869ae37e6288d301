// The text for Prometheus: a golden file, and values that would break a line if they were not escaped.
#include "cache/remote_state.hpp"
#include "core/cache/workplace.hpp"

#include <kiln/cache_admin.hpp>

#include <catch2/catch.hpp>

#include <fstream>
#include <iterator>

namespace kiln::test {
namespace {

using Catch::Matchers::Contains;

std::string golden(const std::string& name) {
  std::ifstream file(std::string(KILN_SOURCE_DIR) + "/tests/golden/cache/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST_CASE("cache::prometheus: every figure under its name, with its unit") {
  CacheTotals totals;
  totals.counts.memory_hits = 12;
  totals.counts.disk_hits = 3;
  totals.counts.misses = 4;
  totals.counts.builds = 5;
  totals.counts.prepared = 6;
  totals.counts.waits = 7;
  totals.counts.evictions = 8;
  totals.counts.rejected = {1, 2, 3, 4, 5, 6};
  totals.counts.disk_evictions = 10;
  totals.counts.lease_waits = 11;
  totals.counts.lease_wait_ns = 1'250'000'000;
  totals.counts.lease_takeovers = 13;
  totals.counts.lease_timeouts = 14;
  totals.counts.negative_hits = 15;
  totals.counts.absent = 16;
  totals.counts.evicted = 17;
  totals.counts.timed_out = 18;
  totals.counts.saved_ms = 12'317.476;
  totals.processes = 9;
  totals.updated_s = 1'795'296'053;
  CacheInventory stored;
  stored.devices = {{"a-1", "llvmpipe (LLVM 15.0.6)", "software", "Mesa 22.3.6", 10, 12345},
                    {"b-2", "", "", "", 1, 99}};
  stored.programs_pending = 2;
  stored.bytes_pending = 77;
  CacheConfig cache;
  const std::string text = cache_prometheus(totals, stored, cache);
  CHECK(text == golden("stats.prom"));
}

TEST_CASE("cache::prometheus: quotes, backslashes and line ends in a device's name stay inside their value") {
  CacheInventory stored;
  stored.devices = {{"f", "a \"quoted\" \\ name\nof two lines", "", "", 1, 1}};
  const std::string text = cache_prometheus({}, stored, {});
  CHECK_THAT(text, Contains(R"(device="a \"quoted\" \\ name\nof two lines")"));
  CHECK_THAT(text, Contains("kiln_cache_saved_seconds 0\n"));
}

TEST_CASE("cache::prometheus: each remote has its own figures") {
  const CacheTestFolder folder;
  CacheConfig cache;
  cache.directory = folder.path();
  cache.remotes = {{"redis://one", false, {"ci"}, "", "", "plain", {}},
                   {"file:///two", false, {"ci"}, "", "", "plain", {}}};
  add_remote_totals(cache.directory, "redis://one", {.found = 3, .failed = 1, .bytes_read = 4096});
  add_remote_totals(cache.directory, "redis://one", {.found = 2, .absent = 7});
  RemoteBreaker(cache.directory, true, "file:///two").measured(250'000, 0);
  const std::string text = cache_prometheus({}, {}, cache);
  CHECK_THAT(text, Contains("kiln_remote_round_trip_seconds{remote=\"file:///two\"} 0.25\n"));
  CHECK_THAT(text, Contains("kiln_remote_events_total{remote=\"redis://one\",event=\"found\"} 5\n") &&
                       Contains("kiln_remote_events_total{remote=\"redis://one\",event=\"absent\"} 7\n") &&
                       Contains("kiln_remote_events_total{remote=\"redis://one\",event=\"bytes_read\"} 4096\n") &&
                       Contains("kiln_remote_events_total{remote=\"file:///two\",event=\"found\"} 0\n") &&
                       Contains("kiln_remote_closed{remote=\"file:///two\"} 0\n"));
  for (const std::string metric : {"kiln_remote_events_total counter", "kiln_remote_failures gauge",
                                   "kiln_remote_closed gauge", "kiln_remote_round_trip_seconds gauge"}) {
    const std::string type = "# TYPE " + metric + "\n";
    CAPTURE(type);
    CHECK_THAT(text, Contains(type));
    CHECK(text.find(type) == text.rfind(type));  // once, for all remotes
  }
  // A damaged file counts nothing, and is replaced.
  overwrite(folder.path() / "remote" / (remote_file_stem("redis://one") + ".totals"), {});
  add_remote_totals(cache.directory, "redis://one", {.written = 1});
  CHECK(read_remote_totals(cache.directory, "redis://one") == RemoteTotals{.written = 1});
  CHECK(decode_remote_totals("found 1\nwritten x\n") == RemoteTotals());
  CHECK(decode_remote_totals("found 1\nnext 2\n") == RemoteTotals{.found = 1});
}

TEST_CASE("cache::prometheus: time lost is a gauge below zero") {
  CacheTotals totals;
  totals.counts.saved_ms = -250;
  CHECK_THAT(cache_prometheus(totals, {}, {}), Contains("kiln_cache_saved_seconds -0.25\n"));
}

}  // namespace
}  // namespace kiln::test
