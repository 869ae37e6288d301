// What a runtime tells a monitoring system, the file that it keeps it in, and the dashboard that shows it.
#include "runtime/metrics.hpp"
#include "core/cache/workplace.hpp"
#include "core/runtime/runtime_fixture.hpp"

#include <kiln/cache_admin.hpp>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <array>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace kiln;
using namespace kiln::test;
using Catch::Matchers::Contains;

namespace {

std::string text_in(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

Measurement run_of(std::uint64_t wall_ns) {
  Measurement run;
  run.wall_ns = wall_ns;
  run.queue_ns = 1'000;
  run.device_ns = wall_ns / 2;
  return run;
}

// The names of the metrics that a text has, each with its type line.
std::set<std::string> names_in(const std::string& text) {
  std::set<std::string> names;
  const std::regex type_line("# TYPE (\\S+) (counter|gauge|histogram)\n");
  for (std::sregex_iterator at(text.begin(), text.end(), type_line), end; at != end; ++at) names.insert((*at)[1]);
  return names;
}

}  // namespace

TEST_CASE("metrics: runs in buckets, stages in seconds, jobs by status") {
  JobMetrics jobs;
  jobs.ran("cpu", "conv2d", run_of(100'000));  // the bound of the first bucket belongs to it
  jobs.ran("cpu", "conv2d", run_of(100'001));
  jobs.ran("cpu", "conv2d", run_of(20'000'000'000));  // beyond the last
  jobs.ended("cpu", "conv2d", "ok");
  jobs.ended("", "gemm", "unavailable");
  Exposition exposition;
  jobs.add_to(exposition);
  const std::string text = exposition.take();
  CHECK_THAT(text, Contains("kiln_runtime_jobs_total{device=\"cpu\",op=\"conv2d\",status=\"ok\"} 1\n") &&
                       Contains("kiln_runtime_jobs_total{device=\"\",op=\"gemm\",status=\"unavailable\"} 1\n"));
  CHECK_THAT(text, Contains("kiln_runtime_run_seconds_bucket{device=\"cpu\",op=\"conv2d\",le=\"0.0001\"} 1\n") &&
                       Contains("le=\"0.00025\"} 2\n") && Contains("le=\"10\"} 2\n") && Contains("le=\"+Inf\"} 3\n") &&
                       Contains("kiln_runtime_run_seconds_count{device=\"cpu\",op=\"conv2d\"} 3\n") &&
                       Contains("kiln_runtime_run_seconds_sum{device=\"cpu\",op=\"conv2d\"} 20.000200001\n"));
  CHECK_THAT(text, Contains("stage=\"queue\"} 3e-06\n") && Contains("stage=\"device\"} 10.0001\n") &&
                       Contains("stage=\"upload\"} 0\n"));
}

TEST_CASE("metrics: jobs under way are counted while they are, and a device that had some stays with 0") {
  JobMetrics jobs;
  const auto text_now = [&] {
    Exposition exposition;
    jobs.add_to(exposition);
    return exposition.take();
  };
  {
    const JobMetrics::UnderWay one(jobs, "cpu"), two(jobs, "cpu"), other(jobs, "opengl:0");
    CHECK_THAT(text_now(), Contains("kiln_runtime_device_jobs{device=\"cpu\"} 2\n") &&
                               Contains("kiln_runtime_device_jobs{device=\"opengl:0\"} 1\n"));
  }
  CHECK_THAT(text_now(), Contains("kiln_runtime_device_jobs{device=\"cpu\"} 0\n"));
}

TEST_CASE("metrics: each figure of jobs, devices and cache has its own line, behind its type") {
  JobMetrics jobs;
  Measurement run = run_of(8'000'000'000);
  run.queue_ns = 1'000'000'000;
  run.build_ns = 2'000'000'000;
  run.upload_ns = 3'000'000'000;
  run.device_ns = 4'000'000'000;
  run.readback_ns = 5'000'000'000;
  for (int i = 0; i < 2; ++i) jobs.ran("cpu", "gemm", run);
  jobs.ended("cpu", "gemm", "ok");
  const JobMetrics::UnderWay under_way(jobs, "cpu");
  DeviceInfo usable, not_usable;
  usable.id = "cpu";
  usable.kind = DeviceKind::cpu;
  usable.name = "a processor";
  usable.driver = "a driver";
  usable.usable = true;
  not_usable.id = "opengl:0";
  not_usable.kind = DeviceKind::gpu;
  CacheStats counts;
  counts.memory_hits = 1;
  counts.disk_hits = 2;
  counts.shared.layer_hits = 3;
  counts.shared.hits = 4;
  counts.misses = 5;
  counts.builds = 6;
  counts.prepared = 7;
  counts.failed_builds = 8;
  counts.evictions = 9;
  counts.disk_evictions = 10;
  counts.programs_in_memory = 11;
  counts.bytes_in_memory = 12;
  counts.saved_ms = 13'500;
  const std::string text = runtime_metrics(jobs, {usable, not_usable}, counts);
  const std::string of_job = "device=\"cpu\",op=\"gemm\"";
  const std::pair<std::string, std::vector<std::string>> expected[] = {
      {"kiln_runtime_jobs_total counter", {"{" + of_job + ",status=\"ok\"} 1"}},
      {"kiln_runtime_device_jobs gauge", {"{device=\"cpu\"} 1"}},
      {"kiln_runtime_run_seconds histogram", {"_sum{" + of_job + "} 16", "_count{" + of_job + "} 2"}},
      {"kiln_runtime_stage_seconds_total counter",
       {"{" + of_job + ",stage=\"queue\"} 2", "{" + of_job + ",stage=\"build\"} 4",
        "{" + of_job + ",stage=\"upload\"} 6", "{" + of_job + ",stage=\"device\"} 8",
        "{" + of_job + ",stage=\"readback\"} 10"}},
      {"kiln_runtime_device_usable gauge",
       {"{device=\"cpu\",kind=\"cpu\",name=\"a processor\",driver=\"a driver\"} 1",
        "{device=\"opengl:0\",kind=\"gpu\",name=\"\",driver=\"\"} 0"}},
      {"kiln_runtime_cache_hits_total counter",
       {"{tier=\"memory\"} 1", "{tier=\"disk\"} 2", "{tier=\"layer\"} 3", "{tier=\"remote\"} 4"}},
      {"kiln_runtime_cache_misses_total counter", {" 5"}},
      {"kiln_runtime_cache_builds_total counter", {"{stored=\"yes\"} 6", "{stored=\"no\"} 7"}},
      {"kiln_runtime_cache_failed_builds_total counter", {" 8"}},
      {"kiln_runtime_cache_evictions_total counter", {"{tier=\"memory\"} 9", "{tier=\"disk\"} 10"}},
      {"kiln_runtime_cache_programs gauge", {" 11"}},
      {"kiln_runtime_cache_memory_bytes gauge", {" 12"}},
      {"kiln_runtime_cache_saved_seconds gauge", {" 13.5"}}};
  for (const auto& [metric, samples] : expected) {
    CHECK_THAT(text, Contains("# TYPE " + metric + "\n"));
    const std::string name = metric.substr(0, metric.find(' '));
    for (const std::string& sample : samples) CHECK_THAT(text, Contains("\n" + name + sample + "\n"));
  }
}

TEST_CASE("metrics: what a label holds cannot end it") {
  Exposition exposition;
  exposition.metric("kiln_runtime_device_usable", "gauge", "Words.");
  exposition.sample({{"name", "a \"b\" \\ \n c"}}, std::uint64_t{1});
  CHECK_THAT(exposition.take(), Contains("{name=\"a \\\"b\\\" \\\\ \\n c\"} 1\n"));
}

TEST_CASE("metrics: a runtime counts what its jobs did, whichever way they ended") {
  RuntimeFixture fixture;
  RunRequest good = small_conv2d();
  good.device = "alpha";
  good.repeat = 3;
  good.progress = [&](std::uint32_t finished) {
    const std::string count = "kiln_runtime_run_seconds_count{device=\"alpha\",op=\"conv2d\"} ";
    CHECK_THAT(fixture.runtime().metrics(), Contains(count + std::to_string(finished) + "\n"));
    return true;
  };
  REQUIRE(fixture.runtime().run(good).status.ok());
  RunRequest bad = small_gemm();
  bad.tensors.clear();
  REQUIRE_FALSE(fixture.runtime().run(bad).status.ok());
  const std::string text = fixture.runtime().metrics();
  CHECK_THAT(text, Contains("kiln_runtime_jobs_total{device=\"alpha\",op=\"conv2d\",status=\"ok\"} 1\n") &&
                       Contains("kiln_runtime_run_seconds_count{device=\"alpha\",op=\"conv2d\"} 3\n") &&
                       Contains("jobs_total{device=\"\",op=\"gemm\",status=\"invalid_argument\"} 1\n") &&
                       Contains("kiln_runtime_device_jobs{device=\"alpha\"} 0\n"));
  CHECK_THAT(text, Contains("kiln_runtime_cache_builds_total{stored=\"yes\"} 1\n") &&
                       Contains("kiln_runtime_device_usable{device=\"alpha\""));
}

TEST_CASE("metrics: the file is whole at each moment, no younger than the interval says, and last written at the end") {
  RuntimeFixture fixture;
  const std::filesystem::path file = fixture.folder() / "kiln.prom";
  fixture.config.metrics = {file, std::chrono::hours(1)};
  RunRequest request = small_conv2d();
  request.device = "alpha";
  REQUIRE(fixture.runtime().run(request).status.ok());
  CHECK_THAT(text_in(file), Contains("status=\"ok\"} 1\n"));
  REQUIRE(fixture.runtime().run(request).status.ok());
  CHECK_THAT(text_in(file), Contains("status=\"ok\"} 1\n"));  // not due
  fixture.restart();
  CHECK_THAT(text_in(file), Contains("status=\"ok\"} 2\n"));

  fixture.config.metrics.interval = std::chrono::nanoseconds(0);
  Runtime& runtime = fixture.runtime();
  std::atomic<bool> stop{false};
  std::atomic<int> torn{0};
  std::thread reader([&] {
    while (!stop) {
      const std::string text = text_in(file);
      if (text.empty() || text.back() != '\n' || text.find("kiln_runtime_cache_saved_seconds ") == std::string::npos) {
        ++torn;
      }
    }
  });
  for (int i = 0; i < 50; ++i) CHECK(runtime.run(request).status.ok());
  stop = true;
  reader.join();
  CHECK(torn == 0);
  CHECK_THAT(text_in(file), Contains("status=\"ok\"} 50\n"));
}

TEST_CASE("metrics: a file that cannot be written is said once, by its name") {
  CollectedLog log;
  MetricsFile file({"/no such folder/kiln.prom", std::chrono::nanoseconds(0)}, {&log, LogLevel::info});
  for (int i = 0; i < 3; ++i) file.write_if_due([] { return std::string("text"); });
  REQUIRE(log.warnings().size() == 1);
  CHECK_THAT(log.warnings()[0], Contains("[metrics] file is not written") && Contains("/no such folder/kiln.prom"));
}

TEST_CASE("metrics: a file that cannot be written costs no job") {
  RuntimeFixture fixture;
  fixture.config.metrics = {fixture.folder() / "no such folder" / "kiln.prom", std::chrono::nanoseconds(0)};
  RunRequest request = small_conv2d();
  request.device = "alpha";
  for (int i = 0; i < 2; ++i) CHECK(fixture.runtime().run(request).status.ok());
  CHECK_FALSE(std::filesystem::exists(fixture.config.metrics.file));
}

TEST_CASE("metrics: the dashboard asks for nothing that there is not") {
  JobMetrics jobs;
  jobs.ran("cpu", "conv2d", run_of(1));
  std::set<std::string> offered = names_in(runtime_metrics(jobs, {}, {}));
  CacheConfig cache;
  cache.remotes = {{"file:///share", false, {"ci"}, "", "", "plain", {}}};
  offered.merge(names_in(cache_prometheus({}, {}, cache)));
  for (const char* suffix : {"_bucket", "_sum", "_count"})
    offered.insert(std::string("kiln_runtime_run_seconds") + suffix);
  const auto dashboard =
      nlohmann::json::parse(text_in(std::filesystem::path(KILN_SOURCE_DIR) / "configs/grafana-dashboard.json"));
  std::size_t asked = 0;
  const std::regex name("kiln_[a-z_]+");
  for (const auto& panel : dashboard["panels"]) {
    CHECK_FALSE(panel["title"].get<std::string>().empty());
    for (const auto& target : panel["targets"]) {
      const std::string expression = target["expr"];
      for (std::sregex_iterator at(expression.begin(), expression.end(), name), end; at != end; ++at) {
        INFO(expression);
        CHECK(offered.contains(at->str()));
        ++asked;
      }
    }
  }
  CHECK(asked >= 15);
}

TEST_CASE("metrics: the text format, with labels that need escapes") {
  Exposition exposition;
  exposition.single("kiln_one", "gauge", "One figure.", std::uint64_t{18446744073709551615u});
  exposition.metric("kiln_two", "counter", "Two figures.");
  exposition.sample({{"a", "x"}}, std::uint64_t{0});
  exposition.sample({{"a", "x\\y\"z\nnew\tline\n"}, {"b", ""}}, 1e-9);
  for (const double value : {0.1, 1.0 / 3, 123456789012.0, 1234567890123.0, -2.5e300}) exposition.sample({}, value);
  exposition.metric("kiln_three", "histogram", "Buckets.");
  exposition.histogram({{"c", "1"}}, std::array{0.5, 2.0}, std::array<std::uint64_t, 3>{3, 0, 4}, 6.25);
  exposition.histogram({}, {}, std::array<std::uint64_t, 1>{2}, 0);
  CHECK(exposition.take() ==
        "# HELP kiln_one One figure.\n# TYPE kiln_one gauge\nkiln_one 18446744073709551615\n"
        "# HELP kiln_two Two figures.\n# TYPE kiln_two counter\nkiln_two{a=\"x\"} 0\n"
        "kiln_two{a=\"x\\\\y\\\"z\\nnew\\\\tline\\n\",b=\"\"} 1e-09\n"
        "kiln_two 0.1\nkiln_two 0.333333333333\nkiln_two 123456789012\nkiln_two 1.23456789012e+12\n"
        "kiln_two -2.5e+300\n"
        "# HELP kiln_three Buckets.\n# TYPE kiln_three histogram\n"
        "kiln_three_bucket{c=\"1\",le=\"0.5\"} 3\nkiln_three_bucket{c=\"1\",le=\"2\"} 3\n"
        "kiln_three_bucket{c=\"1\",le=\"+Inf\"} 7\nkiln_three_sum{c=\"1\"} 6.25\nkiln_three_count{c=\"1\"} 7\n"
        "kiln_three_bucket{le=\"+Inf\"} 2\nkiln_three_sum 0\nkiln_three_count 2\n");
  CHECK(exposition.take().empty());
}
