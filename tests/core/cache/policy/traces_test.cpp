// The simulator of benchmarks/cache/policy_comparison.hpp, and what the policies reach in it on the recorded traces.
#include "cache/eviction_policy.hpp"
#include "cache/policy_comparison.hpp"
#include "core/cache/workplace.hpp"

#include <rapidcheck.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>

namespace kiln::test {
namespace {

using namespace bench;

Trace trace_of(std::vector<std::uint32_t> requests, std::vector<TracedProgram> programs) {
  return {"made here", std::move(programs), std::move(requests)};
}

Trace random_trace(std::uint64_t largest, std::size_t longest) {
  std::vector<TracedProgram> programs;
  for (int i = 0; i < 5; ++i) {
    programs.push_back(
        {"p", *rc::gen::inRange<std::uint64_t>(1, largest + 1), *rc::gen::inRange<std::uint64_t>(1, 50)});
  }
  auto requests = *rc::gen::container<std::vector<std::uint32_t>>(rc::gen::inRange<std::uint32_t>(0, 5));
  requests.resize(std::min(requests.size(), longest));
  return trace_of(std::move(requests), std::move(programs));
}

// The most that any choices of what to hold could have gained, by trying them all.
std::uint64_t best_of_all(const Trace& trace, std::uint64_t capacity,
                          const std::function<std::uint64_t(const TracedProgram&)>& gain) {
  std::map<std::uint32_t, std::uint64_t> best{{0, 0}};  // set of programs held → gain so far
  for (const std::uint32_t request : trace.requests) {
    std::map<std::uint32_t, std::uint64_t> next;
    for (const auto& [held, so_far] : best) {
      const std::uint32_t with = held | 1u << request;
      const std::uint64_t gained = so_far + (with == held ? gain(trace.programs[request]) : 0);
      for (std::uint32_t kept = with;; kept = (kept - 1) & with) {
        std::uint64_t bytes = 0;
        for (std::uint32_t i = 0; i < 5; ++i) bytes += (kept >> i & 1) != 0 ? trace.programs[i].bytes : 0;
        if (bytes <= capacity) next[kept] = std::max(next[kept], gained);
        if (kept == 0) break;
      }
    }
    best = std::move(next);
  }
  return std::max_element(best.begin(), best.end(), [](auto& a, auto& b) { return a.second < b.second; })->second;
}

TEST_CASE("cache::policy::traces: Belady's is the best that there is, for programs of one size") {
  CHECK(rc::check([] {
    const Trace trace = random_trace(1, 25);
    const auto capacity = *rc::gen::inRange<std::uint64_t>(1, 5);
    RC_ASSERT(belady(trace, capacity).hits == best_of_all(trace, capacity, [](const TracedProgram&) { return 1; }));
  }));
}

TEST_CASE("cache::policy::traces: nothing exceeds the upper bound") {
  CHECK(rc::check([] {
    const Trace trace = random_trace(4, 20);
    const auto capacity = *rc::gen::inRange<std::uint64_t>(1, 12);
    const Outcome bound = upper_bound(trace, capacity);
    // A part of a use is rounded down.
    RC_ASSERT(bound.hits + 1 >= best_of_all(trace, capacity, [](const TracedProgram&) { return 1; }));
    RC_ASSERT(bound.saved_ns + 1 >=
              best_of_all(trace, capacity, [](const TracedProgram& program) { return program.build_ns; }));
    for (const Outcome& outcome : {perfect_lfu(trace, capacity), perfect_cost(trace, capacity), belady(trace, capacity),
                                   belady_cost(trace, capacity)}) {
      RC_ASSERT(outcome.hits <= bound.hits + 1);
      RC_ASSERT(outcome.saved_ns <= bound.saved_ns + 1);
    }
  }));
}

TEST_CASE("cache::policy::traces: a small trace, by hand") {
  const Trace trace = trace_of({0, 1, 0, 2, 0, 1, 2, 2}, {{"a", 1, 10}, {"b", 1, 100}, {"c", 2, 1000}});
  CHECK(working_set_bytes(trace) == 4);
  CHECK(possible_hits(trace) == 5);
  CHECK(possible_ns(trace) == 2 * 10 + 100 + 2 * 1000);
  LruPolicy lru;
  // a b | a hit | c takes both places | a b take them | c again | c hit
  const Outcome outcome = simulate(trace, 2, lru, Uses::exact);
  CHECK(outcome.hits == 2);
  CHECK(outcome.saved_ns == 1010);
  CHECK(outcome.refused == 0);
  CHECK(outcome.evictions == 5);
  LruPolicy again;
  CHECK(simulate(trace, 1, again, Uses::stamped).hits == 1);  // a, while c, which does not fit, is refused
  // Room for all of them at once.
  LruPolicy ample;
  CHECK(simulate(trace, 4, ample, Uses::stamped).hits == 5);
}

TEST_CASE("cache::policy::traces: the text form is read, and what is wrong in it is told with its line") {
  const CacheTestFolder folder;
  const auto file = folder.path() / "one.trace";
  const auto read = [&](const std::string& text) {
    std::ofstream(file) << text;
    return read_trace(file);
  };
  const auto trace = read("# by hand\nkey a 10 5  # first\nkey b 20 7\npass p 0 1 1\n\nrun p p\nask 1\nrun p\n");
  REQUIRE(trace);
  CHECK(trace->name == "one");
  CHECK(trace->requests == std::vector<std::uint32_t>{0, 1, 1, 0, 1, 1, 1, 0, 1, 1});
  CHECK(trace->programs[1].bytes == 20);
  CHECK(trace->programs[1].build_ns == 7);
  const auto why = [&](const std::string& text) {
    const auto bad = read(text);
    REQUIRE_FALSE(bad);
    return bad.error().message.substr(bad.error().message.find("one.trace") + 9);
  };
  CHECK(why("key a 10 5\nask 1\n") == ":2: '1': expected the number of a key above, of which there are 1");
  CHECK(why("key a 0 5\n") == ":1: '0', '5': expected two numbers");
  CHECK(why("key a 1\n") == ":1: expected 'key NAME BYTES BUILD_NS'");
  CHECK(why("key a 1 1\npass p 0\npass p 0\n") == ":3: pass 'p' was given before");
  CHECK(why("run p\n") == ":1: 'p': no pass of that name above");
  CHECK(why("walk\n") == ":1: 'walk': expected key, pass, run or ask");
  CHECK(why("key a 1 1\n") == ": nothing is run or asked for");
  CHECK(read_trace(folder.path() / "none").error().code == StatusCode::not_found);
}

TEST_CASE("cache::policy::traces: a seed gives one trace") {
  const auto mixes = standard_mixes(7);
  const Trace a = generate(mixes[3]);
  CHECK(a.requests == generate(mixes[3]).requests);
  CHECK(a.requests != generate(standard_mixes(8)[3]).requests);
  CHECK(a.requests.size() == 72'000);
  CHECK(a.programs.size() == 13'000);
}

struct Reached {
  double hits = 0;   // % of requests
  double saved = 0;  // % of what is possible
};

std::map<std::string, Reached> reached(const Trace& trace) {
  const Comparison comparison = compare(trace, 0.25);
  std::map<std::string, Reached> rows;
  for (const ComparedRow& row : comparison.rows) {
    if (row.uses != "exact") rows[row.name] = {comparison.hit_percent(row), comparison.saved_percent(row)};
  }
  return rows;
}

TEST_CASE("cache::policy::traces: at a quarter of the working set cost saves a fifth more than lru") {
  // Cyclic scans, as a recorded run of tables is, are answered the better the less a policy changes its mind: in hits
  // alone another one may be ahead there.
  const std::pair<const char*, double> traces[] = {{"service", 3},          {"service_interleaved", 3},
                                                   {"service_one_offs", 3}, {"service_sessions", 3},
                                                   {"recorded_tables", 3},  {"recorded_service", 7}};
  for (const auto& [name, points] : traces) {
    INFO(name);
    const auto trace = read_trace(std::string(KILN_SOURCE_DIR "/benchmarks/traces/") + name + ".trace");
    REQUIRE(trace);
    auto rows = reached(*trace);
    CHECK(rows["cost"].saved >= 1.2 * rows["lru"].saved);
    double best_hits = rows["perfect LFU"].hits;
    double best_saved = rows["perfect LFU"].saved;
    for (const char* policy : {"lru", "sieve", "cost"}) {
      best_hits = std::max(best_hits, rows[policy].hits);
      best_saved = std::max(best_saved, rows[policy].saved);
    }
    CHECK(rows["cost"].hits >= best_hits - points);
    CHECK(rows["cost"].saved >= best_saved - 3);
    for (const auto& [row, figures] : rows) {
      CHECK(figures.hits <= rows["upper bound"].hits + 0.01);
      CHECK(figures.saved <= rows["upper bound"].saved + 0.01);
    }
  }
}

}  // namespace
}  // namespace kiln::test
