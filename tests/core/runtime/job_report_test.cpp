// A report as one line of JSON: every figure that is known, and null for each that is not.
#include <kiln/run_request.hpp>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <limits>
#include <string>

using namespace kiln;

namespace {

nlohmann::json json_of_report(const RunReport& report, double first_result_ms = 0, const std::string& output = {}) {
  const std::string line = report_json(report, first_result_ms, output);
  CHECK(line.find('\n') == std::string::npos);
  return nlohmann::json::parse(line);
}

RunReport report_of_layer() {
  RunReport report;
  report.name = "layer";
  report.op = "conv2d";
  report.device.id = "opengl:0";
  report.device.kind = DeviceKind::gpu;
  report.device.name = "a card";
  report.device.driver = "a driver";
  report.device.roof_gflops = 200;
  report.variant = "direct/plain";
  report.selected_because = "requested";
  report.keys = {"aa", "bb"};
  report.tier = Tier::disk;
  report.build_ns = 1'500'000;
  report.runs = 3;
  report.median.queue_ns = 1'000'000;
  report.median.upload_ns = 2'000'000;
  report.median.device_ns = 3'000'000;
  report.median.readback_ns = 4'000'000;
  report.median.wall_ns = 12'000'000;
  report.wall_min_ns = 11'000'000;
  report.wall_max_ns = 13'000'000;
  report.flops = 6e6;
  report.bytes = 1000;
  report.verified = true;
  report.max_rel_error = 0.25;
  report.error_bound = 0.5;
  report.compared_elements = 64;
  report.worst = WorstElement{"y", {1, 2}, 1.5, 1.25, 0.75};
  report.notes = {"beta cannot serve"};
  return report;
}

}  // namespace

TEST_CASE("report: a verified layer is told with all its figures") {
  const auto expected = nlohmann::json::parse(R"({
    "name": "layer", "op": "conv2d", "status": "ok", "error": null,
    "device": {"id": "opengl:0", "kind": "gpu", "name": "a card", "driver": "a driver"},
    "variant": "direct/plain", "selected_because": "requested",
    "program": {"keys": ["aa", "bb"], "tier": "disk", "build_ms": 1.5},
    "runs": 3,
    "ms": {"queue": 1.0, "upload": 2.0, "device": 3.0, "readback": 4.0,
           "wall_median": 12.0, "wall_min": 11.0, "wall_max": 13.0, "first_result": 3.5},
    "gflops": 0.5, "gflops_device": 2.0,
    "work": {"flops": 6e6, "bytes": 1000.0, "roof_gflops": 200.0},
    "verified": true, "max_rel_error": 0.25, "error_bound": 0.5,
    "elements": {"compared": 64, "wrong": 0,
                 "worst": {"output": "y", "index": [1, 2], "found": 1.5, "expected": 1.25, "allowed": 0.75}},
    "output": "y.npy", "notes": ["beta cannot serve"]
  })");
  CHECK(json_of_report(report_of_layer(), 3.5, "y.npy") == expected);
}

TEST_CASE("report: a request that reached no device has no figures") {
  RunReport report;
  report.name = "layer";
  report.op = "gemm";
  report.status = unavailable("no device can serve");
  report.flops = 6e6;
  report.worst = WorstElement{"y", {0}, 1, 2, 3};  // of nothing that was verified
  const auto expected = nlohmann::json::parse(R"({
    "name": "layer", "op": "gemm", "status": "unavailable", "error": "no device can serve",
    "device": null, "variant": null, "selected_because": null,
    "program": {"keys": [], "tier": null, "build_ms": null},
    "runs": 0,
    "ms": {"queue": null, "upload": null, "device": null, "readback": null,
           "wall_median": null, "wall_min": null, "wall_max": null, "first_result": null},
    "gflops": null, "gflops_device": null,
    "work": {"flops": 6e6, "bytes": null, "roof_gflops": null},
    "verified": null, "max_rel_error": null, "error_bound": null, "elements": null, "output": null, "notes": []
  })");
  CHECK(json_of_report(report, 0, "y.npy") == expected);
}

TEST_CASE("report: a wrong result has its elements, no rate and no output") {
  RunReport report = report_of_layer();
  report.status = wrong_result("1 of 64 elements is wrong");
  report.verified = false;
  report.wrong_elements = 1;
  constexpr double infinite = std::numeric_limits<double>::infinity();
  report.worst = WorstElement{"y", {}, std::numeric_limits<double>::quiet_NaN(), -infinite, infinite};
  const auto elements = nlohmann::json::parse(R"({
    "compared": 64, "wrong": 1,
    "worst": {"output": "y", "index": [], "found": "nan", "expected": "-inf", "allowed": "inf"}
  })");
  nlohmann::json json = json_of_report(report, 0, "y.npy");
  CHECK(json["status"] == "wrong_result");
  CHECK(json["error"] == "1 of 64 elements is wrong");
  CHECK(json["verified"] == false);
  CHECK(json["elements"] == elements);
  CHECK(json["gflops"].is_null());
  CHECK(json["gflops_device"].is_null());
  CHECK(json["output"].is_null());
  CHECK(json["ms"]["queue"] == 1);

  report.worst.reset();
  CHECK(json_of_report(report)["elements"].is_null());
  report.status = {};
  json = json_of_report(report);
  CHECK(json["gflops"] == 0.5);
  CHECK(json["output"].is_null());  // it has no file
  report.runs = 0;
  CHECK(json_of_report(report, 0, "y.npy")["output"].is_null());
}

TEST_CASE("report: a pipeline has its steps and their memory, and other requests have neither") {
  RunReport report = report_of_layer();
  StepReport step;
  step.name = "outer/inner";
  step.op = "conv2d";
  step.variant = "direct/plain";
  step.tier = Tier::built;
  step.build_ns = 2'500'000;
  step.rounds = 4;
  step.device_ns = 2'000'000;
  step.flops = 1e6;
  step.verified = true;
  step.max_rel_error = 0.125;
  step.error_bound = 0.25;
  report.steps = {step, StepReport()};
  report.intermediate_bytes = 864;
  report.live_bytes = 432;
  CHECK_FALSE(json_of_report(report).contains("steps"));
  CHECK_FALSE(json_of_report(report).contains("memory"));
  report.op = "pipeline";
  const auto inner = nlohmann::json::parse(R"({
    "name": "outer/inner", "op": "conv2d", "variant": "direct/plain", "tier": "built", "build_ms": 2.5, "rounds": 4,
    "device_ms": 2.0, "gflops_device": 2.0, "verified": true, "max_rel_error": 0.125, "error_bound": 0.25
  })");
  nlohmann::json json = json_of_report(report);
  CHECK(json["memory"]["intermediates"] == 864);
  CHECK(json["memory"]["live"] == 432);
  REQUIRE(json["steps"].size() == 2);
  CHECK(json["steps"][0] == inner);
  for (const char* unknown : {"device_ms", "gflops_device", "verified", "max_rel_error", "error_bound"}) {
    INFO(unknown);
    CHECK(json["steps"][1][unknown].is_null());
  }
  report.steps.clear();
  json = json_of_report(report);
  CHECK(json["memory"]["intermediates"].is_null());
  CHECK(json["memory"]["live"].is_null());
  CHECK(json["steps"].is_array());
  CHECK(json["steps"].empty());
}

TEST_CASE("report: a rate is the work divided by its time, and 0 where there is no time") {
  CHECK(gflops(6e6, 3'000'000) == 2);
  CHECK(gflops(6e6, 1) == 6e6);
  CHECK(gflops(6e6, 0) == 0);
  CHECK(gflops(0, 3) == 0);
}
