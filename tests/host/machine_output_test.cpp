// The machine output of run, devices and plugins: every key of the contract and no other, each of its type.
#include "host/kiln_process.hpp"

#include "data/npy.hpp"

#include <kiln/run_request.hpp>

#include <catch2/catch.hpp>

#include <algorithm>
#include <set>

using namespace kiln::test;
using Catch::Matchers::Contains;
using nlohmann::json;

namespace {

using Keys = std::set<std::string>;

Keys keys_of(const json& object) {
  REQUIRE(object.is_object());
  Keys keys;
  for (const auto& member : object.items()) keys.insert(member.key());
  return keys;
}

bool is_text_or_null(const json& value) { return value.is_null() || (value.is_string() && !value.empty()); }

// Usable or loaded, or else a reason, never both.
void check_reason(const json& one, const char* fact) {
  REQUIRE(one[fact].is_boolean());
  CHECK(is_text_or_null(one["why_not"]));
  CHECK(one["why_not"].is_null() == one[fact].get<bool>());
}

const json& with(const json& list, const char* key, const char* value) {
  REQUIRE(list.is_array());
  const auto at = std::find_if(list.begin(), list.end(), [&](const json& one) { return one[key] == value; });
  INFO(list);
  REQUIRE(at != list.end());
  return *at;
}

void check_counts(const json& object, const Keys& keys) {
  CHECK(keys_of(object) == keys);
  for (const auto& count : object) CHECK(count.is_number_unsigned());
}

void check_cache(const json& cache) {
  CHECK(keys_of(cache) == Keys{"memory_hits", "disk_hits", "misses", "builds", "failed_builds", "prepared",
                               "driver_cache", "missing", "rejected", "bytes_on_disk", "saved_ms", "shared"});
  for (const char* count :
       {"memory_hits", "disk_hits", "misses", "builds", "failed_builds", "prepared", "bytes_on_disk"}) {
    CHECK(cache[count].is_number_unsigned());
  }
  CHECK(cache["driver_cache"].is_string());
  CHECK(cache["saved_ms"].is_number());
  check_counts(cache["missing"], {"absent", "evicted", "timed_out"});
  check_counts(cache["rejected"], {"corrupt", "tampered", "foreign", "driver_changed", "refused", "quarantined"});
}

void check_job(const json& job) {
  CHECK(keys_of(job) == Keys{"name", "op", "status", "error", "device", "variant", "selected_because", "program",
                             "runs", "ms", "gflops", "gflops_device", "verified", "max_rel_error", "error_bound",
                             "elements", "output", "notes", "work"});
  CHECK(keys_of(job["device"]) == Keys{"id", "kind", "name", "driver"});
  for (const auto& text : job["device"]) CHECK_FALSE(text.get<std::string>().empty());
  CHECK(keys_of(job["program"]) == Keys{"keys", "tier", "build_ms"});
  CHECK(job["program"]["build_ms"].is_number());
  CHECK(keys_of(job["ms"]) ==
        Keys{"queue", "upload", "device", "readback", "wall_median", "wall_min", "wall_max", "first_result"});
  for (const auto& time : job["ms"]) CHECK(time.get<double>() >= 0);
  CHECK(job["notes"].is_array());
  CHECK(keys_of(job["work"]) == Keys{"flops", "bytes", "roof_gflops"});
}

constexpr const char* reported_layer = R"(
[[job]]
name = "layer"
op = "conv2d"
c = 8
h = 20
w = 20
k = 16
r = 3
s = 3
pad = 1
input = "random:1"
weights = "random:2"
output = "layer.npy"
)";

}  // namespace

TEST_CASE("run --json has every key of the contract and no other") {
  const TemporaryFolder folder;
  const auto file = folder.write("layer.toml", reported_layer);
  for (int process = 0; process < 2; ++process) {
    const Finished finished = run_kiln(
        {"run", file, "--json", "--verify", "--device", "opengl:0", "--repeat", "3", "--cache-dir", folder / "cache"},
        {.folder = folder.path()});
    INFO(finished.err << finished.out);
    REQUIRE(finished.status == 0);
    const json out = finished.json();
    CHECK(keys_of(out) == Keys{"schema", "kiln", "jobs", "total_ms", "setup_ms", "cache", "warming", "devices",
                               "plugins", "problems", "interrupted"});
    CHECK(out["problems"].empty());
    CHECK(out["schema"] == 1);
    CHECK_THAT(out["kiln"].get<std::string>(), Catch::Matchers::StartsWith("0."));

    REQUIRE(out["jobs"].size() == 1);
    const json& job = out["jobs"][0];
    check_job(job);
    CHECK(job["status"] == "ok");
    CHECK(job["error"].is_null());
    CHECK(job["runs"] == 3);
    CHECK(job["ms"]["wall_median"] > 0);
    CHECK(job["ms"]["device"] > 0);
    // Direct FLOPs over the time that is told beside it.
    const double flops = 2.0 * 16 * 20 * 20 * 8 * 3 * 3;
    CHECK(job["gflops"].get<double>() == Approx(flops / 1e6 / job["ms"]["wall_median"].get<double>()));
    CHECK(job["gflops_device"].get<double>() == Approx(flops / 1e6 / job["ms"]["device"].get<double>()));
    CHECK(job["verified"] == true);
    CHECK(job["max_rel_error"] <= job["error_bound"]);
    CHECK(job["output"] == "layer.npy");

    check_cache(out["cache"]);
    CHECK(out["cache"]["bytes_on_disk"] > 0);
    // What the first built the second loads; on a busy machine that may take longer.
    CHECK((out["cache"]["saved_ms"] != 0) == (process == 1));
    for (const auto& count : out["cache"]["rejected"]) CHECK(count == 0);

    for (const json& device : out["devices"]) {
      CHECK(keys_of(device) == Keys{"id", "usable", "why_not"});
      check_reason(device, "usable");
    }
    CHECK(with(out["devices"], "id", "opengl:0")["usable"] == true);
    for (const json& plugin : out["plugins"]) {
      CHECK(keys_of(plugin) == Keys{"name", "loaded", "why_not"});
      check_reason(plugin, "loaded");
    }
    CHECK(with(out["plugins"], "name", "opengl")["loaded"] == true);
  }
}

TEST_CASE("run --json has the same keys where a job failed") {
  const TemporaryFolder folder;
  folder.write("own.cl", "kernel void own(global float* y) { y[0] = 1.0f; }\n");
  REQUIRE(kiln::data::write_npy(folder / "y.npy", **kiln::HostTensor::create(kiln::DType::f32, {1})).ok());
  const auto file = folder.write("own.toml",
                                 "[[job]]\nname = \"own\"\nop = \"kernel\"\nsource = \"own.cl\"\n"
                                 "bindings = [ { inout = \"y.npy\" } ]\ngrid = [1]\n");
  const Finished finished =
      run_kiln({"run", file, "--json", "--cache-dir", folder / "cache"});  // nothing reads it here
  CHECK(finished.status == 3);
  const json job = finished.json()["jobs"][0];
  CHECK(keys_of(job).size() == 19);
  CHECK_THAT(job["error"].get<std::string>(), Contains("own.cl"));
  for (const char* none : {"device", "variant", "verified", "max_rel_error", "error_bound", "output", "gflops"}) {
    INFO(none);
    CHECK(job[none].is_null());
  }
  CHECK(job["program"]["tier"].is_null());
  CHECK(job["program"]["build_ms"].is_null());
  for (const auto& time : job["ms"]) CHECK(time.is_null());
  check_cache(finished.json()["cache"]);
}

TEST_CASE("a report of a pipeline that was not begun holds no figure that it does not know") {
  kiln::RunReport report;
  report.op = "pipeline";
  report.status = kiln::unavailable("no device");
  json job = json::parse(kiln::report_json(report));
  for (const auto& time : job["ms"]) CHECK(time.is_null());
  CHECK(job["memory"] == json{{"intermediates", nullptr}, {"live", nullptr}});
  report.status = {};
  report.steps.emplace_back().tier = kiln::Tier::disk;
  report.tier = kiln::Tier::disk;
  report.median.wall_ns = report.wall_min_ns = report.wall_max_ns = 2'000'000;
  job = json::parse(kiln::report_json(report, 3.5));
  CHECK(job["memory"] == json{{"intermediates", 0}, {"live", 0}});
  CHECK(job["program"]["build_ms"] == 0);
  CHECK(job["ms"]["queue"] == 0);
  CHECK(job["ms"]["wall_max"] == 2);
  CHECK(job["ms"]["first_result"] == 3.5);
  CHECK(job["ms"]["device"].is_null());  // it has no clock
}

TEST_CASE("devices lists what there is, for people and for machines") {
  const TemporaryFolder folder;
  const Finished finished = run_kiln({"devices", "--json", "--cache-dir", folder / "cache"});
  INFO(finished.err << finished.out);
  REQUIRE(finished.status == 0);
  const json out = finished.json();
  CHECK(keys_of(out) == Keys{"schema", "devices"});
  for (const json& device : out["devices"]) {
    CHECK(keys_of(device) == Keys{"id", "kind", "name", "driver", "usable", "why_not"});
    check_reason(device, "usable");
  }
  const json& cpu = with(out["devices"], "id", "cpu");
  CHECK(cpu["usable"] == true);
  CHECK(cpu["kind"] == "cpu");
  CHECK_FALSE(cpu["name"].get<std::string>().empty());
  CHECK_FALSE(cpu["driver"].get<std::string>().empty());
  CHECK(with(out["devices"], "id", "opengl:0")["usable"] == true);

  const Finished table = run_kiln({"devices", "--cache-dir", folder / "cache"});
  CHECK(table.status == 0);
  for (const json& device : out["devices"]) CHECK_THAT(table.out, Contains(device["id"].get<std::string>()));
}

TEST_CASE("devices ends with 3 where none is usable, and says why") {
  const TemporaryFolder folder;
  const std::vector<std::string> words = {"devices",
                                          "--cache-dir",
                                          folder / "cache",
                                          "--set",
                                          "plugins.load=[\"opengl\", \"dynamic_shaders\"]",
                                          "--set",
                                          "plugins.required=[]",
                                          "--set",
                                          "plugin.opengl.egl_library=\"libEGL-hidden.so\""};
  const Finished table = run_kiln(words);
  INFO(table.err << table.out);
  CHECK(table.status == 3);
  CHECK_THAT(table.out, Contains("libEGL-hidden.so"));
  std::vector<std::string> for_machines = words;
  for_machines.push_back("--json");
  const Finished finished = run_kiln(for_machines);
  CHECK(finished.status == 3);
  const json devices = finished.json()["devices"];
  REQUIRE(devices.size() == 1);
  check_reason(devices[0], "usable");
  CHECK_THAT(devices[0]["why_not"].get<std::string>(), Contains("libEGL-hidden.so"));
}

TEST_CASE("plugins lists what was loaded and what was not, for people and for machines") {
  const TemporaryFolder folder;
  const std::vector<std::string> words = {"plugins", "--cache-dir", folder / "cache", "--set",
                                          "plugins.load=[\"cpu\", \"absent\"]"};
  std::vector<std::string> for_machines = words;
  for_machines.push_back("--json");
  const Finished finished = run_kiln(for_machines);
  INFO(finished.err << finished.out);
  REQUIRE(finished.status == 0);
  const json out = finished.json();
  CHECK(keys_of(out) == Keys{"schema", "plugins"});
  REQUIRE(out["plugins"].size() == 2);
  for (const json& plugin : out["plugins"]) {
    CHECK(keys_of(plugin) == Keys{"name", "path", "version", "loaded", "why_not"});
    check_reason(plugin, "loaded");
  }
  const json& cpu = with(out["plugins"], "name", "cpu");
  CHECK(cpu["loaded"] == true);
  CHECK(cpu["path"] == KILN_PLUGIN_DIR "/cpu.so");
  CHECK_THAT(with(out["plugins"], "name", "absent")["why_not"].get<std::string>(), Contains("absent"));

  const Finished table = run_kiln(words);
  CHECK(table.status == 0);
  CHECK_THAT(table.out, Contains("cpu") && Contains(KILN_PLUGIN_DIR "/cpu.so") && Contains("absent"));
}
