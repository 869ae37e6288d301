// --jobs N: who waits for whom, and that what comes out is what comes out of one after another.
#include "host/kiln_process.hpp"
#include "host/sample_jobs.hpp"

#include "data/npy.hpp"
#include "verbs/run/job_order.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <fstream>
#include <thread>

using namespace kiln::test;
using Catch::Matchers::Contains;
using kiln::JobConfig;
using kiln::host::JobOrder;
using kiln::host::jobs_to_wait_for;

namespace {

JobConfig job(const std::string& input, const std::string& output) {
  JobConfig config;
  config.base = "/somewhere";
  config.input = input;
  config.weights = "random:2";
  config.output = output.empty() ? "" : "/somewhere/" + output;
  return config;
}

JobConfig in_place(const std::string& file) {
  JobConfig config;
  config.base = "/somewhere";
  config.bindings.resize(2);
  config.bindings[0].access = kiln::Access::read;
  config.bindings[0].input = "x.npy";
  config.bindings[1].access = kiln::Access::read_write;
  config.bindings[1].input = config.bindings[1].output = file;
  return config;
}

using Waits = std::vector<std::vector<std::size_t>>;

constexpr const char* doubles = R"(#version 430
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer Y { float y[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < 1000u) y[i] = 2.0 * y[i] + float(SHIFT); }
)";

std::string doubling(int shift) {
  return "\n[[job]]\nname = \"step " + std::to_string(shift) + "\"\nop = \"kernel\"\nsource = \"doubles.comp\"\n" +
         "constants = { SHIFT = " + std::to_string(shift) +
         " }\nbindings = [ { inout = \"y.npy\" } ]\ngrid = [16, 1, 1]\n";
}

}  // namespace

TEST_CASE("job order: a job waits for who writes what it reads or writes, and for who reads what it writes") {
  CHECK(jobs_to_wait_for({job("a.npy", "b.npy"), job("a.npy", "c.npy")}) == Waits{{}, {}});
  CHECK(jobs_to_wait_for({job("random:1", "b.npy"), job("b.npy", "c.npy"), job("./x/../c.npy", "")}) ==
        Waits{{}, {0}, {1}});
  CHECK(jobs_to_wait_for({job("b.npy", ""), job("random:1", "b.npy"), job("b.npy", "")}) == Waits{{}, {0}, {1}});
  CHECK(jobs_to_wait_for({in_place("y.npy"), in_place("z.npy"), in_place("y.npy"), in_place("x.npy")}) ==
        Waits{{}, {}, {0}, {0, 1, 2}});
  CHECK(jobs_to_wait_for({job("random:1", ""), job("random:1", "")}) == Waits{{}, {}});
}

TEST_CASE("job order: every job begins once, in the order of the file, none before those that it waits for") {
  std::vector<JobConfig> jobs;
  for (int i = 0; i < 60; ++i) jobs.push_back(in_place(std::to_string(i % 4)));
  std::atomic<bool> stop{false};
  const Waits waits_for = jobs_to_wait_for(jobs);
  JobOrder order(waits_for, stop);
  std::vector<std::atomic<int>> ended(jobs.size());
  std::atomic<int> begun{0}, too_early{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&] {
      while (const auto mine = order.begin()) {
        ++begun;
        for (const std::size_t before : waits_for[*mine]) too_early += ended[before] == 1 ? 0 : 1;
        std::this_thread::sleep_for(std::chrono::microseconds(100));
        ++ended[*mine];
        order.end(*mine);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(begun == 60);
  CHECK(too_early == 0);
  CHECK(std::ranges::all_of(ended, [](const auto& times) { return times == 1; }));
}

TEST_CASE("job order: one that is stopped lets nobody begin, also those who wait for a job that is under way") {
  std::atomic<bool> stop{false};
  JobOrder order(jobs_to_wait_for({in_place("y.npy"), in_place("y.npy")}), stop);
  REQUIRE(order.begin() == 0u);
  std::optional<std::size_t> second = 7;
  std::thread waiter([&] { second = order.begin(); });
  stop = true;
  order.end(0);
  waiter.join();
  CHECK_FALSE(second);
}

TEST_CASE("--jobs: all of them are verified, told in the order of the file, and overlap on their device") {
  const TemporaryFolder folder;
  std::string file;
  for (int i = 0; i < 8; ++i) file += conv_3x3("layer " + std::to_string(i), {8 + i, 40, 32});
  folder.write("layers.toml", file);
  const std::string device = GENERATE("cpu", "opengl:0");
  const Finished finished =
      run_kiln({"run", folder / "layers.toml", "--json", "--device", device, "--jobs", "4", "--repeat", "3", "--trace",
                folder / "trace.json", "--cache-dir", folder / ("cache of " + device)});
  INFO(device << "\n" << finished.err << finished.out);
  REQUIRE(finished.status == 0);
  const auto json = finished.json();
  REQUIRE(json["jobs"].size() == 8);
  for (std::size_t i = 0; i < 8; ++i) {
    CHECK(json["jobs"][i]["name"] == "layer " + std::to_string(i));
    CHECK(json["jobs"][i]["verified"] == true);
    CHECK(json["jobs"][i]["runs"] == 3);
    CHECK(json["jobs"][i]["ms"]["first_result"] <= json["total_ms"]);
  }
  std::ifstream trace_file(folder / "trace.json");
  std::vector<std::pair<double, double>> runs;
  const auto trace = nlohmann::json::parse(trace_file);
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X" || event.at("cat") != "job") continue;
    const double begin = event.at("ts");
    runs.emplace_back(begin, begin + event.at("dur").get<double>());
  }
  CHECK(runs.size() == 24);
  std::ranges::sort(runs);
  bool overlap = false;
  for (std::size_t i = 1; i < runs.size(); ++i) overlap = overlap || runs[i].first < runs[i - 1].second;
  CHECK(overlap);
}

TEST_CASE("--jobs: jobs that change one file in turn leave what they leave one after another") {
  const TemporaryFolder folder;
  folder.write("doubles.comp", doubles);
  std::string file;
  for (int i = 1; i <= 6; ++i) file += doubling(i);
  folder.write("steps.toml", file);
  auto tensor = kiln::HostTensor::create(kiln::DType::f32, {1000}).value();
  std::ranges::fill(tensor->as<float>(), 1.0f);
  REQUIRE(kiln::data::write_npy(folder / "y.npy", *tensor).ok());
  const Finished finished =
      run_kiln({"run", folder / "steps.toml", "--json", "--jobs", "6", "--cache-dir", folder / "cache"});
  INFO(finished.err << finished.out);
  REQUIRE(finished.status == 0);
  float expected = 1;
  for (int i = 1; i <= 6; ++i) expected = 2 * expected + static_cast<float>(i);
  const auto written = kiln::data::read_npy(folder / "y.npy");
  REQUIRE(written);
  CHECK((*written)->as<float>()[999] == expected);
}

TEST_CASE("--jobs: one that fails fails alone, and Ctrl-C ends all that are under way") {
  const TemporaryFolder folder;
  folder.write("bad.comp", "#version 430\nno GLSL\n");
  REQUIRE(kiln::data::write_npy(folder / "y.npy", **kiln::HostTensor::create(kiln::DType::f32, {4})).ok());
  const std::string bad =
      "[[job]]\nname = \"bad\"\nop = \"kernel\"\nsource = \"bad.comp\"\ngrid = [1]\nbindings = [ { inout = \"y.npy\" } ]\n";
  const std::string file = conv_3x3("good") + bad + conv_3x3("fine", {4, 16, 8});
  const Finished finished =
      run_kiln({"run", folder.write("three.toml", file), "--json", "--jobs", "3", "--cache-dir", folder / "cache"});
  INFO(finished.err << finished.out);
  CHECK(finished.status == 1);
  const auto jobs = finished.json()["jobs"];
  REQUIRE(jobs.size() == 3);
  CHECK(jobs[0]["status"] == "ok");
  CHECK_THAT(jobs[1]["error"].get<std::string>(), Contains("bad.comp"));
  CHECK(jobs[2]["status"] == "ok");

  ProcessOptions options;
  options.interrupt_when = "job 2 of 3";
  const std::string large = conv_3x3("one", {64, 112, 64}) + conv_3x3("two", {64, 112, 32}) + conv_3x3("three");
  const Finished ended = run_kiln({"run", folder.write("large.toml", large), "--jobs", "2", "--repeat", "1000",
                                   "--progress", "plain", "--device", "opengl:0", "--cache-dir", folder / "cache"},
                                  options);
  CHECK(ended.status == -SIGINT);
  CHECK_THAT(ended.err, Contains("interrupted: 2 of 3 jobs were begun"));
}
