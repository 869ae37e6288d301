#include "host/kiln_process.hpp"
#include "host/trace_file.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <map>

using namespace kiln::test;
using Catch::Matchers::Contains;

namespace {

constexpr const char* traced_layer = R"(
[[job]]
name = "tiny"
op = "conv2d"
c = 3
h = 32
w = 32
k = 16
r = 3
s = 3
pad = 1
input = "random:1"
weights = "random:2"
)";

}  // namespace

TEST_CASE("--trace writes Chrome trace events of every stage of every run") {
  const TemporaryFolder folder;
  const Finished finished = run_kiln({"run", folder.write("tiny.toml", traced_layer), "--device", "cpu", "--repeat",
                                      "4", "--trace", folder / "trace.json", "--cache-dir", folder / "cache"});
  INFO(finished.err);
  REQUIRE(finished.status == 0);
  const TraceFile file(folder / "trace.json");
  std::map<std::uint64_t, std::map<std::string, std::pair<double, double>>> by_job;
  for (const TraceFileEvent& span : file.spans()) {
    if (span.process == "kiln") continue;
    by_job[span.arguments.at("fence")][span.category == "job" ? "job" : span.name] = {span.begin, span.end};
  }
  CHECK(by_job.size() == 4);
  for (const auto& [fence, stages] : by_job) {
    CHECK(stages.size() == 7);
    for (const auto& [name, span] : stages) {
      INFO("run " << fence << ", " << name);
      CHECK(span.first >= stages.at("job").first);
      CHECK(span.second <= stages.at("job").second + 1e-6);
    }
    CHECK(stages.at("device").first >= stages.at("upload").second);
    CHECK(stages.at("readback").first >= stages.at("device").second);
  }
}

TEST_CASE("--trace shows what the cache did, what was chosen and why, and leads from a choice to its job") {
  const TemporaryFolder folder;
  using Names = std::vector<std::string>;
  const auto trace_of = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {"run",         folder.write("tiny.toml", traced_layer),
                                      "--trace",     folder / "trace.json",
                                      "--cache-dir", folder / "cache"};
    words.insert(words.end(), more.begin(), more.end());
    const Finished finished = run_kiln(words);
    INFO(finished.err);
    REQUIRE(finished.status == 0);
    return TraceFile(folder / "trace.json");
  };
  const auto has = [](const Names& names, std::string_view name) { return std::ranges::count(names, name) > 0; };

  const TraceFile cold = trace_of({"--device", "opengl:0", "--repeat", "2"});
  const Names made = cold.spans_in("cache");
  for (const char* step : {"lookup", "disk read", "acquire lease", "store", "first dispatch"}) CHECK(has(made, step));
  CHECK_FALSE(has(made, "load"));
  CHECK(has(cold.spans_in("build"), "build"));
  CHECK(cold.moments_in("tuner") == Names{"choose variant"});
  CHECK(cold.spans_in("runtime") == Names{"tiny", "plan"});
  CHECK(cold.spans_in("selector") == Names{"choose device"});
  REQUIRE(cold.flows().size() == 1);
  CHECK(cold.flows()[0].from_lane == "selector");
  CHECK(cold.flows()[0].to_process == "device opengl:0");
  // The first run's job lies within its first dispatch: devices and host are on one clock.
  const auto first = std::ranges::find(cold.spans(), "first dispatch", &TraceFileEvent::name);
  const auto job = std::ranges::find(cold.spans(), "job", &TraceFileEvent::category);
  CHECK(job->begin >= first->begin);
  CHECK(job->end <= first->end);
  // No entry was found. The one that was stored may be read after the first dispatch, for the files that the driver
  // wrote then.
  for (const TraceFileEvent& span : cold.spans()) {
    if (span.name == "authenticate" || span.name == "inflate") CHECK(span.begin >= first->end);
  }

  const TraceFile warm = trace_of({"--device", "opengl:0"});
  const Names found = warm.spans_in("cache");
  for (const char* step : {"lookup", "disk read", "authenticate", "inflate", "load"}) CHECK(has(found, step));
  CHECK_FALSE(has(found, "store"));
  CHECK(warm.spans_in("build").empty());

  const TraceFile chosen = trace_of({});  // of two devices: by the learning selector
  REQUIRE(chosen.moments_in("selector") == Names{"decision"});
  const auto decision = std::ranges::find(chosen.moments(), "decision", &TraceFileEvent::name);
  CHECK(decision->arguments.contains("cpu cost_ms"));
  CHECK(decision->arguments.contains("opengl:0 cost_ms"));
}

TEST_CASE("--trace of several jobs at one time: a lane for each thread, in which nothing crosses") {
  const TemporaryFolder folder;
  std::string jobs;
  for (int i = 0; i < 6; ++i) {
    std::string job = traced_layer;
    job.replace(job.find("\"tiny\""), 6, "\"job " + std::to_string(i) + " \\\"ü\\\"\"");
    jobs += job.replace(job.find("k = 16"), 6, "k = " + std::to_string(8 + i));
  }
  const Finished finished =
      run_kiln({"run", folder.write("jobs.toml", jobs), "--device", "opengl:0", "--jobs", "3", "--repeat", "3",
                "--trace", folder / "trace.json", "--cache-dir", folder / "cache"});
  INFO(finished.err);
  REQUIRE(finished.status == 0);
  const TraceFile file(folder / "trace.json");
  CHECK(file.flows().size() == 6);
  std::map<std::string, int> lanes;
  int jobs_of_the_device = 0;
  for (const TraceFileEvent& span : file.spans()) {
    jobs_of_the_device += span.category == "job";
    if (span.category == "runtime" && span.name.starts_with("job ")) {
      ++lanes[span.lane];
      CHECK(span.name.ends_with(" \"ü\""));
    }
  }
  CHECK(jobs_of_the_device == 18);
  CHECK(lanes.size() >= 2);
}

TEST_CASE("kiln tune --trace: every measurement and the winner") {
  const TemporaryFolder folder;
  const Finished finished =
      run_kiln({"tune", folder.write("tiny.toml", traced_layer), "--device", "opengl:0", "--budget", "300 ms",
                "--trace", folder / "trace.json", "--cache-dir", folder / "cache"});
  INFO(finished.err);
  REQUIRE(finished.status == 0);
  const TraceFile file(folder / "trace.json");
  CHECK(file.spans_in("tuner").size() >= 2);
  const auto winner = std::ranges::find(file.moments(), "winner", &TraceFileEvent::name);
  REQUIRE(winner != file.moments().end());
  CHECK(finished.out.find(winner->arguments.at("variant").get<std::string>()) != std::string::npos);
}

TEST_CASE("--trace to a file that cannot be written is an error, and a verb that runs nothing takes none") {
  const TemporaryFolder folder;
  const Finished finished = run_kiln({"run", folder.write("tiny.toml", traced_layer), "--device", "cpu", "--trace",
                                      folder / "absent" / "trace.json", "--cache-dir", folder / "cache"});
  CHECK(finished.status == 1);
  CHECK_THAT(finished.err, Contains("--trace") && Contains("absent"));
  const Finished refused = run_kiln({"devices", "--trace", folder / "t.json", "--cache-dir", folder / "cache"});
  CHECK(refused.status == 2);
  CHECK_THAT(refused.err, Contains("--trace is not supported"));
}
