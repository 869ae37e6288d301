// --jobs N: who waits for whom, and that what comes out is what comes out of one after another.
#include "host/kiln_process.hpp"
#include "host/sample_jobs.hpp"

#include "data/npy.hpp"
#include "verbs/job_order.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <fstream>
#include <future>
#include <numeric>
#include <thread>

using namespace kiln::test;
using Catch::Matchers::Contains;
using kiln::JobConfig;
using kiln::host::JobOrder;
using kiln::host::jobs_to_wait_for;

namespace {

JobConfig from_to(const std::string& input, const std::string& output) {
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

std::shared_ptr<kiln::HostTensor> words(const std::vector<std::uint32_t>& values) {
  auto tensor = kiln::HostTensor::create(kiln::DType::u32, {static_cast<std::int64_t>(values.size())});
  REQUIRE(tensor);
  std::ranges::copy(values, (*tensor)->as<std::uint32_t>().begin());
  return *tensor;
}

using Waits = std::vector<std::vector<std::size_t>>;

constexpr const char* doubles = R"(#version 430
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer Y { float y[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < 1000u) y[i] = 2.0 * y[i] + float(SHIFT); }
)";

std::string step_job(int shift) {
  return "\n[[job]]\nname = \"step " + std::to_string(shift) + "\"\nop = \"kernel\"\nsource = \"doubles.comp\"\n" +
         "constants = { SHIFT = " + std::to_string(shift) +
         " }\nbindings = [ { inout = \"y.npy\" } ]\ngrid = [16, 1, 1]\n";
}

}  // namespace

TEST_CASE("job order: a job waits for who writes what it reads or writes, and for who reads what it writes") {
  CHECK(jobs_to_wait_for({from_to("a.npy", "b.npy"), from_to("a.npy", "c.npy")}) == Waits{{}, {}});
  CHECK(jobs_to_wait_for({from_to("random:1", "b.npy"), from_to("b.npy", "c.npy"), from_to("./x/../c.npy", "")}) ==
        Waits{{}, {0}, {1}});
  CHECK(jobs_to_wait_for({from_to("b.npy", ""), from_to("random:1", "b.npy"), from_to("b.npy", "")}) ==
        Waits{{}, {0}, {1}});
  CHECK(jobs_to_wait_for({in_place("y.npy"), in_place("z.npy"), in_place("y.npy"), in_place("x.npy")}) ==
        Waits{{}, {}, {0}, {0, 1, 2}});
  CHECK(jobs_to_wait_for({from_to("random:1", ""), from_to("random:1", "")}) == Waits{{}, {}});
  JobConfig sum = from_to("random:1", "c.npy");
  sum.addend = "b.npy";
  CHECK(jobs_to_wait_for({from_to("random:1", "b.npy"), sum}) == Waits{{}, {0}});
}

TEST_CASE("job order: every job begins once, in the order of the file, none before those that it waits for") {
  std::vector<JobConfig> jobs;
  for (int i = 0; i < 60; ++i) jobs.push_back(in_place(std::to_string(i % 4)));
  std::atomic<bool> stop{false};
  const Waits waits_for = jobs_to_wait_for(jobs);
  JobOrder order({waits_for, {}}, stop, [] {});
  std::vector<std::atomic<int>> ended(jobs.size());
  std::atomic<int> begun{0}, too_early{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&] {
      while (const auto mine = order.begin([](std::size_t) {})) {
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
  const auto announce = [](std::size_t) {};
  JobOrder order({jobs_to_wait_for({in_place("y.npy"), in_place("y.npy")}), {}}, stop, [] {});
  REQUIRE(order.begin(announce) == 0u);
  std::optional<std::size_t> second = 7;
  std::thread waiter([&] { second = order.begin(announce); });
  stop = true;
  order.end(0);
  waiter.join();
  CHECK_FALSE(second);
}

TEST_CASE("job order: in the order of the file jobs run one after another, and begin while others run") {
  constexpr std::size_t count = 60;
  std::vector<bool> alone(count);
  for (std::size_t i = 0; i < count; ++i) alone[i] = i % 7 == 3;
  std::atomic<bool> stop{false};
  JobOrder order({Waits(count), alone}, stop, [] {});
  std::vector<std::size_t> announced, ran;
  std::atomic<int> running{0}, begun{0}, beside{0}, wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (const auto mine = order.begin([&](std::size_t job) { announced.push_back(job); })) {
        const int others = begun++;
        if (alone[*mine] && others != 0) ++wrong;
        if (!alone[*mine] && others != 0) ++beside;
        if (!order.wait_to_run(*mine)) ++wrong;
        if (running++ != 0) ++wrong;
        ran.push_back(*mine);
        std::this_thread::sleep_for(std::chrono::microseconds(200));
        --running;
        --begun;
        order.ran(*mine);
        order.end(*mine);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<std::size_t> all(count);
  std::iota(all.begin(), all.end(), std::size_t{0});
  CHECK(announced == all);
  CHECK(ran == all);
  CHECK(wrong == 0);
  CHECK(beside > 0);
}

TEST_CASE("job order: where the next job waits for results of one that has run, they are stored at once") {
  std::atomic<bool> stop{false};
  std::atomic<int> stored{0};
  JobOrder* at = nullptr;
  JobOrder order({Waits{{}, {0}}, {false, false}}, stop, [&] {
    ++stored;
    at->end(0);
  });
  at = &order;
  const auto announce = [](std::size_t) {};
  REQUIRE(order.begin(announce) == 0u);
  REQUIRE(order.wait_to_run(0));
  order.ran(0);
  CHECK(order.begin(announce) == 1u);
  CHECK(stored == 1);
}

TEST_CASE("job order: nobody waits for ever where another thread begins the last job while results are stored") {
  std::atomic<bool> stop{false};
  const auto announce = [](std::size_t) {};
  JobOrder* at = nullptr;
  std::optional<std::size_t> last;
  JobOrder order({Waits{{}, {0}}, {false, false}}, stop, [&] {
    at->end(0);
    last = at->begin(announce);
  });
  at = &order;
  REQUIRE(order.begin(announce) == 0u);
  order.ran(0);
  auto waiter = std::async(std::launch::async, [&] { return order.begin(announce); });
  const bool in_time = waiter.wait_for(std::chrono::seconds(20)) == std::future_status::ready;
  if (!in_time) order.end(1);  // wakes it
  CHECK(in_time);
  CHECK(last == 1u);
  CHECK_FALSE(waiter.get());
}

TEST_CASE("job order: a stop ends the wait for a job's turn") {
  std::atomic<bool> stop{false};
  JobOrder order({Waits(2), {false, false}}, stop, [] {});
  const auto announce = [](std::size_t) {};
  REQUIRE(order.begin(announce) == 0u);
  REQUIRE(order.begin(announce) == 1u);
  bool may = true;
  std::thread waiter([&] { may = order.wait_to_run(1); });
  stop = true;
  order.end(0);
  waiter.join();
  CHECK_FALSE(may);
}

TEST_CASE("run: kernels in a chain of files, begun beside each other, give what they give one by one") {
  const TemporaryFolder folder;
  folder.write("add.comp",
               "#version 430\nlayout(local_size_x = 4) in;\n"
               "layout(std430, binding = 0) readonly buffer In { uint x[]; };\n"
               "layout(std430, binding = 1) writeonly buffer Out { uint y[]; };\n"
               "void main() { y[gl_GlobalInvocationID.x] = x[gl_GlobalInvocationID.x] * 3u + ADD; }\n");
  std::string file;
  REQUIRE(kiln::data::write_npy(folder / "step0.npy", *words({1, 2, 3, 4})).ok());
  for (int i = 0; i < 9; ++i) {
    // Every third job begins a chain of its own, so that some wait and others do not.
    const std::string from = i % 3 == 0 ? "step0.npy" : "step" + std::to_string(i) + ".npy";
    file += "[[job]]\nname = \"step " + std::to_string(i) +
            "\"\nop = \"kernel\"\nsource = \"add.comp\"\ndevice = \"opengl:0\"\n" + "constants = { ADD = \"" +
            std::to_string(i) + "u\" }\ngrid = [1]\nbindings = [ { input = \"" + from + "\" }, { output = \"step" +
            std::to_string(i + 1) + ".npy\", shape = [4], dtype = \"uint32\" } ]\n";
  }
  folder.write("jobs.toml", file);
  for (int round = 0; round < 2; ++round) {
    const Finished finished = run_kiln({"run", folder / "jobs.toml", "--cache-dir", folder / "cache"});
    INFO(finished.err << finished.out);
    REQUIRE(finished.status == 0);
    for (int chain = 0; chain < 3; ++chain) {
      std::vector<std::uint32_t> value{1, 2, 3, 4};
      for (int i = 3 * chain; i < 3 * chain + 3; ++i) {
        for (std::uint32_t& each : value) each = each * 3 + static_cast<std::uint32_t>(i);
        const auto written = kiln::data::read_npy(folder / ("step" + std::to_string(i + 1) + ".npy"));
        REQUIRE(written);
        CHECK(std::ranges::equal((*written)->as<std::uint32_t>(), value));
      }
    }
  }
}

TEST_CASE("run: layers and repeated jobs start after the previous job has ended") {
  const TemporaryFolder folder;
  folder.write("doubles.comp", doubles);
  for (const char* name : {"y.npy", "z.npy"}) {
    REQUIRE(kiln::data::write_npy(folder / name, **kiln::HostTensor::create(kiln::DType::f32, {1000})).ok());
  }
  std::string second = step_job(2);  // of a file of its own, so that it need not wait for the first one
  second.replace(second.find("y.npy"), 5, "z.npy");
  const std::string kernels = step_job(1) + second;
  const ConvExtents large = {64, 112, 64};
  ProcessOptions options;
  options.interrupt_when = "built: program '";  // of the first job, which then has most of its runs before it
  for (const std::string& jobs : {conv_3x3("one", large) + conv_3x3("two", large), kernels}) {
    const Finished ended = run_kiln({"run", folder.write("two.toml", jobs), "--repeat", "100000", "--progress", "plain",
                                     "--log", "debug", "--device", "opengl:0", "--cache-dir", folder / "cache"},
                                    options);
    INFO(ended.err);
    CHECK(ended.status == -SIGINT);
    CHECK_THAT(ended.err, Contains("job 1 of 2: ") && !Contains("job 2 of 2: "));
  }
}

TEST_CASE("--jobs: all of them are verified, told in the order of the file, and overlap on their device") {
  const TemporaryFolder folder;
  std::string file;
  for (int i = 0; i < 8; ++i) file += conv_3x3("layer " + std::to_string(i), {8 + i, 40, 32});
  folder.write("layers.toml", file);
  const std::string device = GENERATE("cpu", "opengl:0");
  const Finished finished = run_kiln({"run", folder / "layers.toml", "--json", "--device", device, "--jobs", "4",
                                      "--repeat", "3", "--set", "executor.timeout=2 min", "--trace",
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
  for (int i = 1; i <= 6; ++i) file += step_job(i);
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
      "[[job]]\nname = \"bad\"\nop = \"kernel\"\nsource = \"bad.comp\"\ngrid = [1]\nbindings = [ { inout = \"y.npy\" } "
      "]\n";
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
  const std::string large = conv_3x3("one", {64, 28, 64}) + conv_3x3("two", {64, 28, 32}) + conv_3x3("three");
  const Finished ended = run_interrupted({"run", folder.write("large.toml", large), "--jobs", "2", "--repeat", "1000",
                                          "--progress", "plain", "--device", "opengl:0"},
                                         options, folder)
                             .finished;
  CHECK(ended.status == -SIGINT);
  CHECK_THAT(ended.err, Contains("interrupted: 2 of 3 jobs were started"));
}
