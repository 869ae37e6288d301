// The file that --trace writes, of a run in virtual time, whose overlaps are known to the nanosecond.
#include "core/executor/virtual_schedule.hpp"

#include <kiln/chrome_trace.hpp>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <thread>

using namespace kiln;
using namespace kiln::test;

namespace {

struct Event {
  double begin = 0, end = 0;
};

bool overlap(const Event& a, const Event& b) { return a.begin < b.end && b.begin < a.end; }

}  // namespace

TEST_CASE("trace file: stages nest in their jobs, slots are lanes, and neighbours overlap", "[executor][trace]") {
  ChromeTrace trace;
  VirtualWorkload workload;
  workload.model.upload.fixed_ns = workload.model.device.fixed_ns = workload.model.readback.fixed_ns = 1e6;
  workload.jobs = 12;
  workload.trace = &trace;
  REQUIRE(run_virtually(workload, 3).failed == 0);

  const auto json = nlohmann::json::parse(trace.json());
  std::map<std::uint64_t, std::map<std::string, Event>> stages;  // by job
  std::map<std::uint64_t, Event> jobs;
  std::map<int, std::vector<Event>> lanes;
  std::map<int, std::string> names;
  for (const auto& event : json.at("traceEvents")) {
    if (event.at("ph") == "M") {
      if (event.at("name") == "thread_name") names[event.at("tid")] = event.at("args").at("name");
      if (event.at("name") == "process_name") CHECK(event.at("args").at("name") == "device simulated:0");
      continue;
    }
    REQUIRE(event.at("ph") == "X");
    const double begin = event.at("ts");
    const double length = event.at("dur");
    CHECK(begin >= 0);
    CHECK(length >= 0);
    const Event span{begin, begin + length};
    const std::uint64_t fence = event.at("args").at("fence");
    if (event.at("cat") == "job") {
      jobs[fence] = span;
      lanes[event.at("tid")].push_back(span);
    } else {
      stages[fence][event.at("name")] = span;
    }
  }
  CHECK(jobs.size() == 12);
  CHECK(names == std::map<int, std::string>{{1, "slot 0"}, {2, "slot 1"}, {3, "slot 2"}});
  for (const auto& [fence, of_job] : stages) {
    CHECK(of_job.size() == 6);
    for (const auto& [name, span] : of_job) {
      INFO("job " << fence << ", " << name);
      CHECK(span.begin >= jobs[fence].begin);
      CHECK(span.end <= jobs[fence].end + 1e-9);
    }
    CHECK(of_job.at("device").end - of_job.at("device").begin == Approx(1000));  // microseconds
  }
  for (const auto& [lane, spans] : lanes) {
    for (std::size_t i = 1; i < spans.size(); ++i) CHECK(spans[i].begin >= spans[i - 1].end - 1e-9);
  }
  for (std::uint64_t fence = 2; fence < 12; ++fence) {  // upload of the next, dispatch of this, readback of the last
    CHECK(overlap(stages[fence + 1]["upload"], stages[fence]["device"]));
    CHECK(overlap(stages[fence]["device"], stages[fence - 1]["readback"]));
    CHECK_FALSE(overlap(stages[fence]["device"], stages[fence + 1]["device"]));
  }
}

TEST_CASE("trace file: an arrow connects a choice with its first job", "[executor][trace]") {
  ChromeTrace trace;
  const TraceFigure figures[] = {{"candidates", std::uint64_t{3}},
                                 {"cost_ms", 0.5},
                                 {"why", std::string_view("\"nearest\"")},
                                 {"roof", std::numeric_limits<double>::infinity()}};
  trace.add_event({TraceArea::selector, "choose", 1000, std::uint64_t{3500}, figures});
  trace.add_event({TraceArea::tuner, "told", 10'007, {}, {}});
  trace.add_link({TraceArea::selector, 1500, "fixture:0", 99});  // of a job that never was
  trace.add_link({TraceArea::selector, 2000, "fixture:0", 7});
  trace.add_link({TraceArea::selector, 5000, "fixture:0", 7});  // back in time
  trace.add_link({TraceArea::build, 2000, "fixture:0", 7});     // from a lane without events
  const StageSpan job[] = {{"fixture:0", "tiled", 0, 7, Stage::job, 4000, 9250},
                           {"fixture:0", "tiled", 0, 7, Stage::device, 5000, 9000}};
  trace.add_job(job);
  const auto expected = nlohmann::json::parse(R"([
    {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "kiln"}},
    {"ph": "M", "name": "process_name", "pid": 2, "tid": 0, "args": {"name": "device fixture:0"}},
    {"ph": "M", "name": "thread_name", "pid": 2, "tid": 1, "args": {"name": "slot 0"}},
    {"ph": "M", "name": "thread_name", "pid": 1, "tid": 2, "args": {"name": "selector"}},
    {"ph": "M", "name": "thread_sort_index", "pid": 1, "tid": 2, "args": {"sort_index": 2}},
    {"ph": "M", "name": "thread_name", "pid": 1, "tid": 3, "args": {"name": "tuner"}},
    {"ph": "M", "name": "thread_sort_index", "pid": 1, "tid": 3, "args": {"sort_index": 3}},
    {"ph": "X", "name": "choose", "pid": 1, "tid": 2, "cat": "selector", "ts": 0, "dur": 2.5,
     "args": {"candidates": 3, "cost_ms": 0.5, "why": "\"nearest\"", "roof": "unknown"}},
    {"ph": "s", "name": "chosen", "pid": 1, "tid": 2, "cat": "decision", "id": 2, "ts": 1},
    {"ph": "X", "name": "tiled", "pid": 2, "tid": 1, "cat": "job", "ts": 3, "dur": 5.25, "args": {"fence": 7}},
    {"ph": "f", "name": "chosen", "pid": 2, "tid": 1, "cat": "decision", "id": 2, "bp": "e", "ts": 3},
    {"ph": "X", "name": "device", "pid": 2, "tid": 1, "cat": "stage", "ts": 4, "dur": 4, "args": {"fence": 7}},
    {"ph": "i", "name": "told", "pid": 1, "tid": 3, "cat": "tuner", "ts": 9.007, "s": "t", "args": {}}
  ])");
  const auto events = nlohmann::json::parse(trace.json()).at("traceEvents");
  REQUIRE(events.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(events[i].dump() == expected[i].dump());
}

TEST_CASE("trace file: it is written as this text, and taken once", "[executor][trace]") {
  ChromeTrace trace;
  const std::string begin = "{\"traceEvents\":[", end = "\n],\"displayTimeUnit\":\"ns\"}\n";
  CHECK(trace.json() == begin + end);
  trace.add_job({});
  CHECK(trace.json() == begin + end);
  const StageSpan stages[] = {{"d:0", "conv \"x\"", 2, 7, Stage::job, 1000, 9500},
                              {"d:0", "conv \"x\"", 2, 7, Stage::queue, 1000, 2000},
                              {"d:0", "conv \"x\"", 2, 7, Stage::device, 2510, 9511}};
  trace.add_job(stages);
  const std::string device =
      "\n"
      R"({"ph":"M","name":"process_name","pid":2,"tid":0,"args":{"name":"device d:0"}})";
  const std::string text =
      begin + device + ",\n" + R"({"ph":"M","name":"thread_name","pid":2,"tid":1,"args":{"name":"slot 2"}})" + ",\n" +
      R"({"ph":"X","name":"conv \"x\"","pid":2,"tid":1,"cat":"job","ts":0,"dur":8.500,"args":{"fence":7}})" + ",\n" +
      R"({"ph":"X","name":"queue","pid":2,"tid":1,"cat":"stage","ts":0,"dur":1,"args":{"fence":7}})" + ",\n" +
      R"({"ph":"X","name":"device","pid":2,"tid":1,"cat":"stage","ts":1.510,"dur":7.001,"args":{"fence":7}})" + end;
  CHECK(trace.json() == text);
  CHECK(trace.take_json() == text);
  CHECK(trace.json() == begin + device + end);  // devices keep their numbers
}

TEST_CASE("trace file: each thread has a lane for each area, the second one with a number", "[executor][trace]") {
  ChromeTrace trace;
  const auto add = [&](TraceArea area) { trace.add_event({area, "work", 1, 2, {}}); };
  add(TraceArea::cache);
  std::thread([&] {
    add(TraceArea::cache);
    add(TraceArea::build);
  }).join();
  add(TraceArea::cache);
  std::map<int, std::string> names;
  std::map<int, int> events;
  const auto json = nlohmann::json::parse(trace.json());
  for (const auto& event : json.at("traceEvents")) {
    if (event.at("name") == "thread_name") names[event.at("tid")] = event.at("args").at("name");
    if (event.at("name") == "work") ++events[event.at("tid")];
  }
  CHECK(names == std::map<int, std::string>{{1, "cache"}, {2, "cache 2"}, {3, "build"}});
  CHECK(events == std::map<int, int>{{1, 2}, {2, 1}, {3, 1}});
}

TEST_CASE("trace file: devices with equal fences, and slots and labels, are told apart; what was taken is gone",
          "[executor][trace]") {
  ChromeTrace trace;
  const StageSpan first[] = {{"d:0", "a", 1, 5, Stage::job, 100, 300},
                             {"d:0", "a", 1, 5, Stage::queue, 0, 50},
                             {"d:0", "a", 1, 5, Stage::build, 0, 0},  // there was none
                             {"d:0", "a", 1, 5, Stage::invalid, 1, 2}};
  const StageSpan second[] = {{"d:1", "b", 1, 5, Stage::job, 120, 400}};
  const StageSpan third[] = {{"d:0", "b", 0, 6, Stage::job, 130, 130}};
  for (const std::span<const StageSpan> job : {std::span<const StageSpan>(first), {second}, {third}})
    trace.add_job(job);
  const TraceFigure figures[] = {{"unused", std::uint64_t{1}}};
  trace.add_event({TraceArea::selector, "choose", 90, std::uint64_t{95}, figures});
  trace.add_link({TraceArea::selector, 92, "d:1", 5});
  trace.add_link({TraceArea::selector, 100, "d:0", 5});  // as the job begins
  trace.add_link({TraceArea::selector, 101, "d:0", 5});  // back in time
  const std::string begin = "{\"traceEvents\":[\n", next = ",\n", end = "\n],\"displayTimeUnit\":\"ns\"}\n";
  const std::string processes =
      R"({"ph":"M","name":"process_name","pid":1,"tid":0,"args":{"name":"kiln"}})" + next +
      R"({"ph":"M","name":"process_name","pid":2,"tid":0,"args":{"name":"device d:0"}})" + next +
      R"({"ph":"M","name":"process_name","pid":3,"tid":0,"args":{"name":"device d:1"}})" + next;
  CHECK(
      trace.take_json() ==
      begin + processes + R"({"ph":"M","name":"thread_name","pid":2,"tid":1,"args":{"name":"slot 0"}})" + next +
          R"({"ph":"M","name":"thread_name","pid":2,"tid":2,"args":{"name":"slot 1"}})" + next +
          R"({"ph":"M","name":"thread_name","pid":3,"tid":3,"args":{"name":"slot 1"}})" + next +
          R"({"ph":"M","name":"thread_name","pid":1,"tid":4,"args":{"name":"selector"}})" + next +
          R"({"ph":"M","name":"thread_sort_index","pid":1,"tid":4,"args":{"sort_index":4}})" + next +
          R"({"ph":"X","name":"queue","pid":2,"tid":2,"cat":"stage","ts":0,"dur":0.050,"args":{"fence":5}})" + next +
          R"({"ph":"X","name":"choose","pid":1,"tid":4,"cat":"selector","ts":0.090,"dur":0.005,"args":{"unused":1}})" +
          next + R"({"ph":"s","name":"chosen","pid":1,"tid":4,"cat":"decision","id":1,"ts":0.092})" + next +
          R"({"ph":"X","name":"a","pid":2,"tid":2,"cat":"job","ts":0.100,"dur":0.200,"args":{"fence":5}})" + next +
          R"({"ph":"s","name":"chosen","pid":1,"tid":4,"cat":"decision","id":2,"ts":0.100})" + next +
          R"({"ph":"f","name":"chosen","pid":2,"tid":2,"cat":"decision","id":2,"bp":"e","ts":0.100})" + next +
          R"({"ph":"X","name":"b","pid":3,"tid":3,"cat":"job","ts":0.120,"dur":0.280,"args":{"fence":5}})" + next +
          R"({"ph":"f","name":"chosen","pid":3,"tid":3,"cat":"decision","id":1,"bp":"e","ts":0.120})" + next +
          R"({"ph":"X","name":"b","pid":2,"tid":1,"cat":"job","ts":0.130,"dur":0,"args":{"fence":6}})" + end);
  const TraceFigure later[] = {{"n", std::uint64_t{2}}, {"m", 0.25}};
  trace.add_event({TraceArea::runtime, "later", 1000, std::uint64_t{4456}, later});
  CHECK(trace.json() ==
        begin + processes + R"({"ph":"M","name":"thread_name","pid":1,"tid":1,"args":{"name":"runtime"}})" + next +
            R"({"ph":"M","name":"thread_sort_index","pid":1,"tid":1,"args":{"sort_index":1}})" + next +
            R"({"ph":"X","name":"later","pid":1,"tid":1,"cat":"runtime","ts":0,"dur":3.456,"args":{"n":2,"m":0.25}})" +
            end);
  // No arrow of those before leads to a job of the same number.
  trace.add_event({TraceArea::selector, "choose", 90, {}, {}});
  trace.add_job(second);
  const std::string again = trace.json();
  CHECK(again.find("\"fence\":5") != std::string::npos);
  CHECK(again.find("chosen") == std::string::npos);
}
