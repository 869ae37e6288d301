// Every `--json` output against its description in docs/json-output.schema.json.
#include "host/json_schema.hpp"
#include "host/kiln_process.hpp"
#include "host/sample_jobs.hpp"

#include "data/npy.hpp"

#include <kiln/operation.hpp>

#include <catch2/catch.hpp>

#include <fstream>

using namespace kiln::test;
using nlohmann::json;

namespace {

const json& schemas() {
  static const json file = json::parse(std::ifstream(std::string(KILN_SOURCE_DIR) + "/docs/json-output.schema.json"));
  return file;
}

std::string failures_of(const std::string& name, const json& value) {
  std::string text;
  for (const std::string& failure : schema_failures(value, schemas().at("$defs").at(name), schemas())) {
    text += failure + "\n";
  }
  return text;
}

// Runs a verb with --json and holds its output against the definition.
json check_verb(const std::string& name, std::vector<std::string> words, const TemporaryFolder& folder) {
  words.insert(words.end(), {"--json", "--cache-dir", folder / "cache"});
  const Finished finished =
      run_kiln(words, {.environment = {{"XDG_CONFIG_HOME", folder / "config"}}, .folder = folder.path()});
  INFO(name << "\n" << finished.err << finished.out);
  const json out = finished.json();
  CHECK(failures_of(name, out) == "");
  return out;
}

const std::string own_kernel = R"(
[[job]]
name = "own"
op = "kernel"
source = "own.comp"
bindings = [ { inout = "y.npy" } ]
grid = [1]
tune = { FACTOR = [1, 2] }
)";

void write_kernel(const TemporaryFolder& folder, const std::string& statement) {
  folder.write("own.comp",
               "#version 430\nlayout(local_size_x = 4) in;\n"
               "layout(std430, binding = 0) buffer Y { float y[]; };\nvoid main() { " +
                   statement + " }\n");
  REQUIRE(kiln::data::write_npy(folder / "y.npy", **kiln::HostTensor::create(kiln::DType::f32, {4})).ok());
}

}  // namespace

TEST_CASE("the checker of schemas finds what is missing, of another type, unknown or out of range") {
  const json file = {{"$defs", {{"one", {{"type", "string"}}}}}};
  const json schema = {{"type", "object"},
                       {"required", {"a", "b"}},
                       {"properties",
                        {{"a", {{"type", "integer"}, {"minimum", 0}}},
                         {"b", {{"$ref", "#/$defs/one"}}},
                         {"c", {{"type", "array"}, {"items", {{"enum", {"x", nullptr}}}}}},
                         {"d", {{"anyOf", {{{"type", "boolean"}}, {{"type", "null"}}}}}},
                         {"e", {{"const", 1}}},
                         {"f", {{"type", "object"}, {"additionalProperties", {{"type", "number"}}}}}}}};
  const json good = {{"a", 1}, {"b", "text"}, {"c", {"x", nullptr}}, {"d", nullptr}, {"e", 1}, {"f", {{"any", 2.5}}}};
  CHECK(schema_failures(good, schema, file).empty());
  const auto with = [&](const char* name, const json& value) {
    json bad = good;
    bad[name] = value;
    return schema_failures(bad, schema, file).size();
  };
  CHECK(with("a", -1) == 1);
  CHECK(with("a", 1.5) == 1);
  CHECK(with("a", nullptr) == 1);
  CHECK(with("b", 3) == 1);
  CHECK(with("c", json::array({"y", "x"})) == 1);
  CHECK(with("d", "no") == 1);
  CHECK(with("e", 2) == 1);
  CHECK(with("f", {{"any", "text"}}) == 1);
  CHECK(with("unknown", 1) == 1);
  json missing = good;
  missing.erase("b");
  CHECK(schema_failures(missing, schema, file).size() == 1);
  CHECK(schema_failures(good, {{"maxItems", 3}}, file).size() == 1);
}

TEST_CASE("docs/json-output.schema.json names each operation that a job can have") {
  for (const kiln::Operation& operation : kiln::operations()) {
    if (operation.name != "chain") CHECK(failures_of("operation", std::string(operation.name)) == "");
  }
}

TEST_CASE("every --json output is as docs/json-output.schema.json describes it") {
  const TemporaryFolder folder;
  folder.write("jobs.toml", "[selector]\nlog = true\n" + tiny_gemm("product"));
  write_kernel(folder, "y[gl_GlobalInvocationID.x] += float(FACTOR);");
  folder.write("own.toml", own_kernel);

  const json ran = check_verb("run", {"run", "jobs.toml", "--device", "opengl:0", "--repeat", "2"}, folder);
  CHECK(ran["jobs"][0]["gflops"].is_number());
  check_verb("run", {"run", "jobs.toml"}, folder);  // with a choice of device, which is recorded
  const json own = check_verb("run", {"run", "own.toml"}, folder);
  CHECK(own["jobs"][0]["status"] == "ok");
  CHECK(own["jobs"][0]["gflops"].is_null());
  CHECK(own["jobs"][0]["gflops_device"].is_null());
  check_verb("devices", {"devices"}, folder);
  check_verb("plugins", {"plugins", "--set", "plugins.load=[\"cpu\", \"absent\"]"}, folder);
  check_verb("config-check", {"config", "check", "jobs.toml"}, folder);
  check_verb("config-show", {"config", "show", "own.toml"}, folder);
  check_verb("cache-stats", {"cache", "stats"}, folder);
  const json listed = check_verb("cache-list", {"cache", "list"}, folder);
  REQUIRE_FALSE(listed["programs"].empty());
  const std::string key = listed["programs"][0]["key"];
  check_verb("cache-inspect", {"cache", "inspect", key}, folder);
  check_verb("cache-explain", {"cache", "explain", key}, folder);
  check_verb("cache-verify", {"cache", "verify"}, folder);
  check_verb("cache-persist", {"cache", "persist"}, folder);
  check_verb("cache-warm", {"cache", "warm", "jobs.toml"}, folder);
  check_verb("cache-export", {"cache", "export", "programs.bundle"}, folder);
  const json shown = check_verb("cache-key", {"cache", "export", "--show-key"}, folder);
  check_verb("cache-import", {"cache", "import", "programs.bundle", "--trust", shown["public_key"]}, folder);
  check_verb("cache-sharing-key", {"cache", "key", "create", "ci", "--until", "2099-12-31"}, folder);
  check_verb("cache-key-list", {"cache", "key", "list"}, folder);
  const std::string remote = folder.write("remote.toml", "[[cache.remote]]\nurl = \"file://" + folder.path().string() +
                                                             "/share\"\nmode = \"read_write\"\nwriters = [\"ci\"]\n"
                                                             "sign_with = \"ci\"\n" +
                                                             conv_3x3("shared"));
  std::filesystem::create_directory(folder / "share");
  CHECK(check_verb("cache-push", {"cache", "push", remote}, folder)["remotes"][0]["written"] > 0);
  check_verb("cache-pull", {"cache", "pull", remote}, folder);
  check_verb("cache-remote-status", {"cache", "remote", "status", remote}, folder);
  check_verb("cache-layer-create", {"cache", "layer", "create", "layer", "--sign-with", "ci"}, folder);
  const json baked = check_verb(
      "cache-bake",
      {"cache", "bake", remote, "--for", "opengl:0", "--for", "none", "--sign-with", "ci", "--output", "baked"},
      folder);
  CHECK(baked["layer"]["programs"] > 0);
  REQUIRE(baked["targets"].size() == 2);
  CHECK(baked["targets"][0]["error"].is_null());
  CHECK(baked["targets"][1]["target"] == "none");
  CHECK(baked["targets"][1]["error"].is_string());
  check_verb("cache-prune", {"cache", "prune", "--max-age", "1d"}, folder);
  check_verb("selector-show", {"selector", "show"}, folder);
  check_verb("selector-explain", {"selector", "explain", "jobs.toml"}, folder);
  check_verb("selector-replay", {"selector", "replay"}, folder);
  check_verb("tune", {"tune", "own.toml", "--device", "opengl:0", "--budget", "1 s"}, folder);
  check_verb("tune-audit", {"tune", "audit", "own.toml", "--sample", "1"}, folder);
  CHECK(check_verb("tune-push", {"tune", "push", remote, "--device", "opengl:0"}, folder)["devices"].size() <= 1);
  check_verb("tune-pull", {"tune", "pull", remote, "--device", "opengl:0"}, folder);
  check_verb("tune-export", {"tune", "export", "records"}, folder);
  check_verb("tune-import", {"tune", "import", "records"}, folder);
  check_verb("selector-reset", {"selector", "reset"}, folder);
  check_verb("cache-prune", {"cache", "clear"}, folder);
  folder.write("one.cl", "kernel void one(global float* x) { x[get_global_id(0)] = 1.0f; }\n");
  check_verb("kernel-build", {"kernel", "build", "one.cl", "--target", "gfx1100"}, folder);
  folder.write("stream.pm4", std::string("\x00\x10\xFF\xFF", 4));  // a filler of one word
  check_verb("pm4-dump", {"pm4", "dump", "stream.pm4"}, folder);
  const std::string baseline = std::string(KILN_SOURCE_DIR) + "/benchmarks/baseline.json";
  CHECK(failures_of("bench-compare", run_kiln({"bench", "compare", baseline, baseline, "--json"}).json()) == "");
  const json kept = json::parse(std::ifstream(baseline));
  CHECK(failures_of("bench", kept) == "");
}

TEST_CASE("--json is as described where something failed, too") {
  const TemporaryFolder folder;
  write_kernel(folder, "this is no GLSL;");
  folder.write("own.toml", own_kernel);
  const json failed = check_verb("run", {"run", "own.toml"}, folder);
  CHECK(failed["jobs"][0]["status"] == "invalid_argument");
  CHECK(failed["cache"]["builds"] == 0);
  CHECK(failed["cache"]["failed_builds"] == 2);  // each of its two variants was tried
  check_verb("tune", {"tune", "own.toml", "--device", "opengl:0", "--budget", "1 s"}, folder);
  folder.write("wrong.toml", "[cache]\npolcy = 1\n");
  check_verb("config-check", {"config", "check", "wrong.toml"}, folder);
  check_verb("run", {"run", "wrong.toml"}, folder);
  check_verb("run", {"run", "own.toml", "--device", "cuda:0"}, folder);
  check_verb("devices", {"devices", "--set", "plugin.opengl.egl_library=\"libEGL-hidden.so\""}, folder);
  check_verb("selector-show", {"selector", "show"}, folder);
  check_verb("cache-stats", {"cache", "stats"}, folder);
}
