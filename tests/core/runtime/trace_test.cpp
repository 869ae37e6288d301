// What the runtime tells a trace of a request: the choice of a device and the job that followed it, the plan, the first
// dispatch; and what the learning selector tells of its numbers.
#include "core/runtime/runtime_fixture.hpp"
#include "support/told_trace.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace kiln;
using namespace kiln::test;

TEST_CASE("runtime: a trace is told each step of a request, and which job followed the choice") {
  ToldTrace trace;
  RuntimeFixture fixture;
  fixture.trace = &trace;
  RunRequest request = small_conv2d();
  request.name = "layer";
  request.device = "beta";
  request.repeat = 4;
  REQUIRE(fixture.runtime().run(request).status.ok());
  const ToldEvent choice = trace.first("choose device");
  CHECK(choice.area == TraceArea::selector);
  CHECK(choice.words.at("device") == "beta");
  CHECK(choice.words.at("because") == "requested");
  CHECK(trace.first("plan").words.at("variant") == "forwarded");
  CHECK(trace.first("lookup").words.at("answer") == "built");
  const ToldEvent whole = trace.first("layer");
  CHECK(whole.area == TraceArea::runtime);
  CHECK(whole.words.at("tier") == "built");
  CHECK(whole.words.at("status") == "ok");
  CHECK(whole.numbers.at("runs") == 4);
  for (const ToldEvent& event : trace.events()) {
    CHECK(event.begin_ns >= whole.begin_ns);
    CHECK(event.end_ns.value_or(event.begin_ns) <= *whole.end_ns);
  }
  CHECK(std::ranges::count(trace.names(TraceArea::cache), "first dispatch") == 1);
  CHECK(trace.first("first dispatch").begin_ns >= trace.first("lookup").end_ns);

  REQUIRE(trace.links().size() == 1);  // one choice serves all four runs
  CHECK(trace.links()[0].area == TraceArea::selector);
  CHECK(trace.links()[0].at_ns >= choice.begin_ns);
  CHECK(trace.links()[0].at_ns < *choice.end_ns);
  CHECK(trace.links()[0].device == "beta");
  REQUIRE(trace.fences().size() == 4);
  CHECK(trace.links()[0].fence == trace.fences()[0]);

  const std::size_t told = trace.events().size();
  REQUIRE(fixture.runtime().run(request).status.ok());
  // The request and the choice; hits in memory are told by nobody, the plan is there, and no run is the first any more.
  CHECK(trace.events().size() == told + 2);
  CHECK(trace.links().size() == 2);
  CHECK(trace.links()[1].fence == trace.fences()[4]);
}

TEST_CASE("runtime: the learning selector tells the numbers behind each of its choices") {
  ToldTrace trace;
  RuntimeFixture fixture;
  fixture.trace = &trace;
  const RunRequest request = small_gemm();
  for (int i = 0; i < 6; ++i) REQUIRE(fixture.runtime().run(request).status.ok());
  const std::vector<ToldEvent> events = trace.events();  // of the devices that are prepared beside the jobs too
  std::size_t decisions = 0;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const ToldEvent& event = events[i];
    if (event.name != "decision") continue;
    ++decisions;
    CHECK(event.area == TraceArea::selector);
    CHECK_FALSE(event.end_ns.has_value());
    CHECK_FALSE(event.words.at("ground").empty());
    CHECK(event.words.contains("alpha evidence"));
    CHECK(event.words.contains("beta evidence"));
    // Told when it has ended; what other threads tell (the plan of a device prepared meanwhile) may come between.
    const auto next = std::find_if(events.begin() + static_cast<std::ptrdiff_t>(i), events.end(),
                                   [](const ToldEvent& later) { return later.name == "choose device"; });
    REQUIRE(next != events.end());
    const ToldEvent& around = *next;
    CHECK(around.words.at("device") == event.words.at("chosen"));
    CHECK(event.begin_ns >= around.begin_ns);
    CHECK(event.begin_ns <= *around.end_ns);
  }
  CHECK(decisions == 6);
  const auto last =
      std::find_if(events.rbegin(), events.rend(), [](const ToldEvent& event) { return event.name == "decision"; });
  CHECK(last->numbers.at(last->words.at("chosen") + " cost_ms") > 0);
}
