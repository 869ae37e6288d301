#include "host/kiln_process.hpp"
#include "host/sample_jobs.hpp"

#include <catch2/catch.hpp>

#include <fstream>

using namespace kiln::test;
using Catch::Matchers::Contains;

namespace {

Finished run_tiny(const TemporaryFolder& folder, const std::string& device, std::vector<std::string> more = {}) {
  std::vector<std::string> words = {
      "run", folder.write("tiny.toml", tiny_layer), "--json", "--device", device, "--cache-dir", folder / "cache"};
  words.insert(words.end(), more.begin(), more.end());
  return run_kiln(words);
}

}  // namespace

TEST_CASE("a convolution on OpenGL is built once: the second process builds nothing") {
  const TemporaryFolder folder;
  const Finished first = run_tiny(folder, "opengl:0");
  INFO(first.err);
  REQUIRE(first.status == 0);
  const auto cold = first.json();
  CHECK(cold["schema"] == 1);
  const std::size_t programs = cold["cache"]["builds"];  // as many as the variant asks for
  CHECK(programs > 0);
  CHECK(cold["cache"]["driver_cache"] == "adopted");
  CHECK(cold["jobs"][0]["program"]["tier"] == "built");
  CHECK(cold["jobs"][0]["verified"] == true);

  for (const char* count : {"done", "of", "linked", "ready", "built", "failed"}) CHECK(cold["warming"][count] == 0);
  CHECK(cold["warming"]["running"] == false);  // nobody asked for it
  CHECK_THAT(first.err, !Contains("debug"));
  const auto stored = run_kiln({"cache", "list", "--json", "--cache-dir", folder / "cache"}).json()["programs"];
  CHECK(stored.size() == programs);
  for (const auto& program : stored) {
    CHECK(program["op"] == "conv2d");
    CHECK(program["shape"] == "1x3x32x32 k16 3x3 pad 1");
    CHECK(program["variant"] == cold["jobs"][0]["variant"]);
  }

  const Finished second = run_tiny(folder, "opengl:0", {"--log", "debug"});
  REQUIRE(second.status == 0);
  const std::string key = cold["jobs"][0]["program"]["keys"][0];
  CHECK_THAT(second.err, Contains("kiln: debug: cache[") && Contains("]: disk: program 'tiny/") &&
                             Contains("(" + key.substr(0, 12) + ") on opengl:0, "));
  const auto warm = second.json();
  CHECK(warm["cache"]["builds"] == 0);
  CHECK(warm["cache"]["disk_hits"] == programs);
  CHECK(warm["jobs"][0]["program"]["tier"] == "disk");
  CHECK(warm["jobs"][0]["program"]["keys"] == cold["jobs"][0]["program"]["keys"]);
  CHECK(warm["jobs"][0]["verified"] == true);
  CHECK(warm["jobs"][0]["max_rel_error"] <= warm["jobs"][0]["error_bound"]);
}

TEST_CASE("OpenGL without a binary format serves: its programs are prepared in each process, and nothing is kept") {
  const TemporaryFolder folder;
  const auto file = folder.write("tiny.toml", tiny_layer);
  for (int process = 0; process < 2; ++process) {
    const Finished finished = run_kiln({"run", file, "--json", "--device", "opengl:0", "--cache-dir", folder / "cache"},
                                       {.environment = {{"MESA_SHADER_CACHE_DISABLE", "1"}}});
    INFO(finished.err << finished.out);
    REQUIRE(finished.status == 0);
    const auto json = finished.json();
    CHECK(json["jobs"][0]["device"]["id"] == "opengl:0");
    CHECK(json["jobs"][0]["program"]["tier"] == "library");
    CHECK(json["jobs"][0]["verified"] == true);
    CHECK(json["cache"]["builds"] == 0);
    const std::size_t programs = json["jobs"][0]["program"]["keys"].size();
    CHECK(programs > 0);
    CHECK(json["cache"]["prepared"] >= programs);
    CHECK(json["cache"]["driver_cache"] == "none");
    CHECK(json["cache"]["bytes_on_disk"] == 0);
  }
}

TEST_CASE("after repeated runs the .meta tells the first dispatch and the rate of the later ones apart") {
  const TemporaryFolder folder;
  const auto meta_of = [&] {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder / "cache")) {
      if (entry.path().extension() != ".meta") continue;
      std::ifstream file(entry.path());
      return nlohmann::json::parse(file);
    }
    return nlohmann::json();
  };
  const auto run = [&] {
    return run_kiln({"run", folder.write("tiny.toml", tiny_gemm("tiny")), "--json", "--device", "opengl:0",
                     "--cache-dir", folder / "cache", "--repeat", "9"});
  };
  const Finished cold = run();
  INFO(cold.err);
  REQUIRE(cold.status == 0);
  REQUIRE(cold.json()["cache"]["builds"] == 1);
  const auto first = meta_of();
  // Machine code is generated at the first dispatch: it takes longer than the fastest run as a whole.
  const double first_dispatch_ms = first["first_dispatch_ms"];
  CHECK(first_dispatch_ms > cold.json()["jobs"][0]["ms"]["wall_min"].get<double>());
  CHECK(first["gflops"] > 0.0);

  REQUIRE(run().status == 0);  // the driver's own cache is warm
  CHECK(meta_of()["first_dispatch_ms"] >= first_dispatch_ms);
  CHECK(meta_of()["gflops"] > 0.0);
  CHECK_THAT(run_kiln({"cache", "list", "--cache-dir", folder / "cache"}).out, !Contains("–"));
}

TEST_CASE("a convolution on the CPU is prepared by the library and never a build") {
  const TemporaryFolder folder;
  const Finished finished = run_tiny(folder, "cpu", {"--repeat", "5"});
  INFO(finished.err);
  REQUIRE(finished.status == 0);
  const auto json = finished.json();
  CHECK(json["cache"]["builds"] == 0);
  CHECK(json["cache"]["prepared"] >= 1);
  CHECK(json["jobs"][0]["program"]["tier"] == "library");
  CHECK(json["jobs"][0]["runs"] == 5);
  CHECK(json["jobs"][0]["device"]["kind"] == "cpu");
  CHECK(json["jobs"][0]["verified"] == true);
  const auto& ms = json["jobs"][0]["ms"];
  CHECK(ms["wall_min"] <= ms["wall_median"]);
  CHECK(ms["wall_median"] <= ms["wall_max"]);
  CHECK(ms["first_result"] > 0);
}

TEST_CASE("a rate above the device's roof is a failed job without figures, and nothing is learned of it") {
  const TemporaryFolder folder;
  const auto run = [&](const std::string& roof) {
    return run_tiny(
        folder, "fixture:0",
        {"--plugin-path", KILN_PLUGIN_DIR ":" KILN_FIXTURE_DIR, "--set", "generator.name=library", "--set",
         "plugins.load=[\"cpu\", \"fixture\"]", "--set", "plugin.fixture.roof_mflops=" + roof, "--repeat", "3"});
  };
  const Finished refused = run("1");  // the job is of 0.9 MFLOP and takes no second
  INFO(refused.err);
  REQUIRE(refused.status == 1);
  const auto job = refused.json()["jobs"][0];
  CHECK(job["status"] == "internal");
  CHECK_THAT(job["error"].get<std::string>(), Contains("fixture:0, whose roof is 0.001"));
  CHECK(job["runs"] == 0);
  CHECK(job["gflops"].is_null());
  CHECK(job["gflops_device"].is_null());
  for (const auto& time : job["ms"]) CHECK(time.is_null());
  CHECK(job["program"]["build_ms"].is_number());  // it was found
  CHECK(job["output"].is_null());
  const Finished served = run("0");
  INFO(served.err);
  REQUIRE(served.status == 0);
  CHECK(served.json()["jobs"][0]["gflops"] > 0.001);
}

TEST_CASE("what was not compared is null, never true") {
  const TemporaryFolder folder;
  const auto file =
      folder.write("plain.toml", std::string(tiny_layer).replace(tiny_layer.find("verify = true"), 13, ""));
  const auto json = run_kiln({"run", file, "--json", "--device", "cpu", "--cache-dir", folder / "cache"}).json();
  CHECK(json["jobs"][0]["verified"].is_null());
  const auto verified =
      run_kiln({"run", file, "--json", "--device", "cpu", "--verify", "--cache-dir", folder / "cache"}).json();
  CHECK(verified["jobs"][0]["verified"] == true);
}

TEST_CASE("the selector chooses where nobody asks, and says why") {
  const TemporaryFolder folder;
  const Finished finished = run_tiny(folder, "auto", {"--repeat", "3"});
  INFO(finished.err);
  REQUIRE(finished.status == 0);
  CHECK(finished.json()["jobs"][0]["selected_because"].get<std::string>().size() > 3);
}

TEST_CASE("outputs are written where the job says, in a folder with spaces") {
  const TemporaryFolder folder("with some spaces");
  const auto file = folder.write("tiny.toml", tiny_layer + "output = \"result of it.npy\"\n");
  const Finished finished = run_kiln({"run", file, "--json", "--device", "cpu", "--cache-dir", folder / "my cache"},
                                     {.folder = folder.path()});
  INFO(finished.err);
  REQUIRE(finished.status == 0);
  CHECK(finished.json()["jobs"][0]["output"] == "result of it.npy");
  CHECK(std::filesystem::file_size(folder / "result of it.npy") > 16u * 32 * 32 * 4);
}

TEST_CASE("the table tells device, tier and verdict") {
  const TemporaryFolder folder;
  const Finished finished =
      run_kiln({"run", folder.write("tiny.toml", tiny_layer), "--device", "cpu", "--cache-dir", folder / "cache"});
  CHECK(finished.status == 0);
  CHECK_THAT(finished.out, Contains("tiny") && Contains("cpu") && Contains("library") && Contains("yes"));
  CHECK(finished.out.find('\033') == std::string::npos);
}

TEST_CASE("--output writes the result to a file") {
  const TemporaryFolder folder;
  const Finished finished = run_tiny(folder, "cpu", {"--output", folder / "result.json"});
  CHECK(finished.status == 0);
  CHECK(finished.out == "");
  CHECK(std::filesystem::file_size(folder / "result.json") > 200);
}

TEST_CASE("kiln run: an --output that cannot be written is refused before any job runs") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "is_there");
  const Finished refused = run_tiny(folder, "cpu", {"--output", folder / "is_there"});
  INFO(refused.err);
  CHECK(refused.status == 2);
  CHECK_THAT(refused.err, Contains("--output: file") && Contains("is a folder, expected a file"));
  CHECK(refused.json()["jobs"].empty());
  CHECK_THAT(refused.json()["problems"][0]["message"].get<std::string>(), Contains("is a folder"));
}
