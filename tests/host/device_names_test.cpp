// Ids of devices: an unknown one is a usage error for every verb; a device that cannot read a job's language is no
// candidate for it.
#include "host/kiln_process.hpp"
#include "host/sample_jobs.hpp"

#include "data/npy.hpp"

#include <catch2/catch.hpp>

using namespace kiln::test;
using Catch::Matchers::Contains;

namespace {

const std::string two_plugins = "[plugins]\nload = [\"cpu\", \"opengl\", \"dynamic_shaders\"]\n";

// A job in GLSL that doubles x.npy into y.npy, beside a product that any device can do.
std::string glsl_job(const TemporaryFolder& folder) {
  folder.write("double.comp",
               "#version 430\nlayout(local_size_x = 4) in;\n"
               "layout(std430, binding = 0) readonly buffer X { float x[]; };\n"
               "layout(std430, binding = 1) buffer Y { float y[]; };\n"
               "void main() { y[gl_GlobalInvocationID.x] = 2.0 * x[gl_GlobalInvocationID.x]; }\n");
  for (const char* name : {"x.npy", "y.npy"}) {
    REQUIRE(kiln::data::write_npy(folder / name, **kiln::HostTensor::create(kiln::DType::f32, {4})).ok());
  }
  return "[[job]]\nname = \"own\"\nop = \"kernel\"\nsource = \"double.comp\"\n"
         "bindings = [ { input = \"x.npy\" }, { inout = \"y.npy\" } ]\ngrid = [1, 1, 1]\n";
}

void check_names_devices(const std::string& text, const std::string& id) {
  CHECK_THAT(text, Contains("'" + id + "'") && Contains("no such device"));
  CHECK_THAT(text, Contains("usable: cpu, opengl:0"));
  CHECK_THAT(text, Contains("unusable: amdgpu:0: "));  // with the reason behind it
}

}  // namespace

TEST_CASE("an unknown --device is a usage error that lists the devices, for every verb that takes one") {
  const TemporaryFolder folder;
  const auto file = folder.write("l.toml", conv_3x3("layer"));
  const std::vector<std::vector<std::string>> verbs = {{"run", file},
                                                       {"devices"},
                                                       {"tune", file, "--budget", "1 s"},
                                                       {"tune", "audit", file},
                                                       {"selector", "explain", file},
                                                       {"selector", "show"},
                                                       {"selector", "reset"},
                                                       {"cache", "warm", file},
                                                       {"config", "check", file}};
  for (std::vector<std::string> words : verbs) {
    words.insert(words.end(), {"--device", "cuda:0", "--cache-dir", folder / "cache"});
    const Finished finished = run_kiln(words);
    INFO(words[0] << " " << words[1] << "\n" << finished.err << finished.out);
    CHECK(finished.status == 2);
    CHECK_THAT(finished.err, Contains("--device"));
    check_names_devices(finished.err, "cuda:0");
  }
}

TEST_CASE("a mistyped device gets the nearest one") {
  const TemporaryFolder folder;
  const auto file = folder.write("l.toml", conv_3x3("layer"));
  const struct {
    const char* typed;
    const char* nearest;
  } cases[] = {{"opengl0", "opengl:0"},  {"opnegl:0", "opengl:0"}, {"opengl:7", "opengl:0"},
               {"OpenGL:0", "opengl:0"}, {"CPU", "cpu"},           {"gpu", "cpu"},
               {"amdgpu", "amdgpu:0"},   {"amdgpu:1", "amdgpu:0"}, {" opengl:0", "opengl:0"},
               {"cpu:0", nullptr},       {"nvidia", nullptr}};
  for (const auto& one : cases) {
    const Finished finished = run_kiln({"run", file, "--json", "--device", one.typed, "--cache-dir", folder / "cache"});
    INFO(one.typed << "\n" << finished.err);
    CHECK(finished.status == 2);
    CHECK(finished.json()["jobs"].empty());
    CHECK_THAT(finished.json()["problems"].dump(), Contains("no such device"));
    if (one.nearest != nullptr) {
      CHECK_THAT(finished.err, Contains("nearest: " + std::string(one.nearest)));
    } else {
      CHECK_THAT(finished.err, !Contains("nearest"));
    }
  }
  const Finished empty = run_kiln({"run", file, "--device", "", "--cache-dir", folder / "cache"});
  CHECK(empty.status == 2);
  CHECK_THAT(empty.err, Contains("expected auto or a device id, as listed by `kiln devices`"));
}

TEST_CASE("unknown devices of a file are all named, each at its place, before a job runs") {
  const TemporaryFolder folder;
  const auto file =
      folder.write("l.toml", "[device]\nprefer = \"cuda:0\"\n" + conv_3x3("one") + "device = \"metal\"\n" +
                                 conv_3x3("two") + "device = \"cpu\"\noutput = \"two.npy\"\n");
  for (const char* verb : {"run", "explain", "check"}) {
    std::vector<std::string> words = {verb, file, "--cache-dir", folder / "cache"};
    if (words[0] == "explain") words.insert(words.begin(), "selector");
    if (words[0] == "check") words.insert(words.begin(), "config");
    const Finished finished = run_kiln(words, {.folder = folder.path()});
    INFO(finished.err);
    CHECK(finished.status == 2);
    CHECK_THAT(finished.err, Contains("l.toml:2:10: ") && Contains("'cuda:0'"));
    CHECK_THAT(finished.err, Contains("l.toml:17:10: ") && Contains("'metal'"));
  }
  CHECK_FALSE(std::filesystem::exists(folder / "two.npy"));
  const Finished replaced = run_kiln({"run", file, "--device", "cpu", "--cache-dir", folder / "cache"},  //
                                     {.folder = folder.path()});
  INFO(replaced.err << replaced.out);
  CHECK(replaced.status == 0);  // --device replaces what the file says
}

TEST_CASE("a device that exists and cannot be used keeps the rules of fallback") {
  const TemporaryFolder folder;
  const auto file = folder.write("l.toml", conv_3x3("layer"));
  const std::vector<std::string> run = {"run", file, "--json", "--device", "amdgpu:0", "--cache-dir", folder / "cache"};
  const Finished other = run_kiln(run);
  INFO(other.err << other.out);
  CHECK(other.status == 0);
  CHECK_THAT(other.json()["jobs"][0]["notes"].dump(), Contains("amdgpu:0"));
  std::vector<std::string> never = run;
  never.insert(never.end(), {"--set", "device.fallback=never"});
  CHECK(run_kiln(never).status == 3);
  const Finished listed = run_kiln({"devices", "--device", "amdgpu:0", "--json", "--cache-dir", folder / "cache"});
  CHECK(listed.status == 3);
  REQUIRE(listed.json()["devices"].size() == 1);
  CHECK(listed.json()["devices"][0]["id"] == "amdgpu:0");
}

TEST_CASE("a device that cannot read a job's language is no candidate, whatever fallback says") {
  const TemporaryFolder folder;
  const auto file = folder.write("l.toml", two_plugins + glsl_job(folder) + tiny_gemm("product"));
  const struct {
    const char* prefer;
    const char* fallback;
  } cases[] = {{"auto", "never"}, {"auto", "report"}, {"cpu", "never"}, {"cpu", "report"}, {"opengl:0", "never"}};
  for (const auto& one : cases) {
    const std::string prefer = std::string("device.prefer=") + one.prefer;
    const std::string fallback = std::string("device.fallback=") + one.fallback;
    const Finished finished =
        run_kiln({"run", file, "--json", "--set", prefer, "--set", fallback, "--cache-dir", folder / "cache"});
    INFO(one.prefer << " " << one.fallback << "\n" << finished.err << finished.out);
    CHECK(finished.status == 0);
    const auto own = finished.json()["jobs"][0];
    CHECK(own["device"]["id"] == "opengl:0");
    CHECK(own["notes"].empty());
    const Finished explained = run_kiln(
        {"selector", "explain", file, "--json", "--set", prefer, "--set", fallback, "--cache-dir", folder / "cache"});
    CHECK(explained.status == 0);
    CHECK(explained.json()["jobs"][0]["device"] == "opengl:0");
    CHECK(explained.json()["jobs"][0]["candidates"].size() <= 1);
  }
  // A device that the user names for the job is another matter.
  const Finished named = run_kiln({"run", file, "--json", "--device", "cpu", "--cache-dir", folder / "cache"});
  CHECK(named.status == 0);
  CHECK_THAT(named.json()["jobs"][0]["notes"].dump(), Contains("glsl") && Contains("cpu"));
  const Finished never = run_kiln(
      {"run", file, "--json", "--device", "cpu", "--set", "device.fallback=never", "--cache-dir", folder / "cache"});
  CHECK(never.status == 3);
  CHECK_THAT(never.json()["jobs"][0]["error"].get<std::string>(), Contains("written in glsl"));
}
