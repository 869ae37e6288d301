// Pipelines through the command: results, loops, reports, and what is refused before anything runs.
#include "host/kiln_process.hpp"

#include "data/npy.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>

using namespace kiln::test;
using Catch::Matchers::Contains;

namespace {

namespace fs = std::filesystem;

constexpr const char* add_kernel = R"(#version 430
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer X { float x[]; };
layout(std430, binding = 1) buffer Y { float y[]; };
uniform float amount;
void main() { uint i = gl_GlobalInvocationID.x; if (i < x.length()) y[i] = x[i] * 2.0 + amount; }
)";

std::string step(const std::string& name, const std::string& from, const std::string& to,
                 const std::string& more = "") {
  return "[[pipeline.step]]\nname = \"" + name + "\"\nop = \"kernel\"\nsource = \"add.comp\"\ngrid = [2]\n" +
         "uniforms = { amount = 1.0 }\nbindings = [ { input = \"" + from + "\" }, { " + to + " } ]\n" + more;
}

std::string pipeline(const std::string& tensors) {
  return "[[pipeline]]\nname = \"chain\"\ndevice = \"opengl:0\"\n" + tensors;
}

struct PipelinePlace {
  TemporaryFolder folder;

  PipelinePlace() {
    folder.write("add.comp", add_kernel);
    auto tensor = kiln::HostTensor::create(kiln::DType::f32, {100}).value();
    float next = 0;
    for (float& value : tensor->as<float>()) value = next++;
    REQUIRE(kiln::data::write_npy(folder / "x.npy", *tensor).ok());
  }

  Finished run(const std::string& text, std::vector<std::string> more = {}) const {
    std::vector<std::string> words{"run", folder.write("pipeline.toml", text), "--json", "--cache-dir",
                                   folder / "cache"};
    words.insert(words.end(), more.begin(), more.end());
    return run_kiln(words);
  }
  std::vector<float> result(const std::string& name) const {
    const auto read = kiln::data::read_npy(folder / name);
    REQUIRE(read);
    return {(*read)->as<float>().begin(), (*read)->as<float>().end()};
  }
};

const std::string ends = "tensors.x = { input = \"x.npy\" }\ntensors.y = { output = \"y.npy\" }\n";

}  // namespace

TEST_CASE("a pipeline of kernels runs as one submission, and builds its program once") {
  const PipelinePlace place;
  const std::string text = pipeline(ends) + step("1", "x", "output = \"a\", shape = [100]") +
                           step("2", "a", "output = \"b\", shape = [100]") +
                           step("3", "b", "output = \"c\", shape = [100]") +
                           step("4", "c", "output = \"y\", shape = [100]");
  const Finished finished = place.run(text, {"--verify=steps", "--repeat", "2"});
  INFO(finished.err << finished.out);
  REQUIRE(finished.status == 0);
  const auto json = finished.json();
  const auto& job = json["jobs"][0];
  CHECK(job["op"] == "pipeline");
  CHECK(job["verified"] == true);
  CHECK(job["runs"] == 2);
  CHECK(json["cache"]["builds"] == 1);
  REQUIRE(job["steps"].size() == 4);
  CHECK(job["steps"][3]["name"] == "4");
  CHECK(job["steps"][3]["tier"] == "memory");
  CHECK(job["steps"][0]["device_ms"] > 0.0);
  CHECK(job["memory"]["intermediates"] == 800);
  CHECK(job["memory"]["live"] == 800);
  CHECK(place.result("y.npy")[99] == 99.0f * 16 + 15);
}

TEST_CASE("a pipeline's table has a row for each step, with a rate where the operations are known") {
  const PipelinePlace place;
  const std::string text =
      pipeline(ends) + step("scale", "x", "output = \"a\", shape = [1, 1, 10, 10]") +
      "[[pipeline.step]]\nname = \"layer\"\nop = \"conv2d\"\nc = 1\nh = 10\nw = 10\nk = 1\nr = 3\ns = 3\npad = 1\n"
      "weights = \"random:1\"\ninput = \"a\"\noutput = \"y\"\n";
  const Finished finished =
      run_kiln({"run", place.folder.write("pipeline.toml", text), "--cache-dir", place.folder / "cache"});
  INFO(finished.err << finished.out);
  REQUIRE(finished.status == 0);
  const std::string times = " +[a-z]+ +[0-9.]+ +[0-9.]+ +";  // behind the tier: of the build and of the run
  CHECK_THAT(finished.out, Catch::Matches("job +device +tier +build ms +first ms +run ms +GFLOP/s +verified(.|\n)*"));
  CHECK_THAT(finished.out, Catch::Matches("(.|\n)*\n  scale" + times + "– +–\n(.|\n)*"));
  CHECK_THAT(finished.out, Catch::Matches("(.|\n)*\n  layer" + times + "[0-9.]+ +–\n(.|\n)*"));
}

TEST_CASE("a pipeline's loops exchange tensors after each round") {
  const PipelinePlace place;
  const int rounds = GENERATE(1, 2, 7);
  const std::string loop = "repeat = " + std::to_string(rounds) + "\nswap = [\"y\", \"next\"]\n";
  const bool nested = GENERATE(false, true);
  std::string text = pipeline(ends) + step("first", "x", "output = \"y\", shape = [100]");
  const std::string inner = step("round", "y", "output = \"next\", shape = [100]", nested ? "" : loop);
  if (nested) {
    text += "[[pipeline.step]]\nname = \"loop\"\n" + loop + "[[pipeline.step.step]]" + inner.substr(inner.find('\n'));
  } else {
    text += inner;
  }
  const Finished finished = place.run(text, {"--verify=steps"});
  INFO(finished.err << finished.out);
  REQUIRE(finished.status == 0);
  const auto json = finished.json();
  CHECK(json["jobs"][0]["steps"][1]["rounds"] == rounds);
  CHECK(json["jobs"][0]["steps"][1]["name"] == (nested ? "loop/round" : "round"));
  const float scale = std::ldexp(1.0f, rounds + 1);
  CHECK(place.result("y.npy")[99] == 99.0f * scale + scale - 1);
}

TEST_CASE("a step's grid is what an earlier step has counted") {
  const PipelinePlace place;
  place.folder.write("keep.comp", R"(#version 430
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer X { float x[]; };
layout(std430, binding = 1) buffer Kept { float kept[]; };
layout(std430, binding = 2) buffer Counts { uint counts[]; };
void main() {
  uint i = gl_GlobalInvocationID.x;
  if (i < x.length() && x[i] >= 40.0) kept[atomicAdd(counts[0], 1u)] = x[i];
}
)");
  place.folder.write("size.comp", R"(#version 430
layout(local_size_x = 1) in;
layout(std430, binding = 0) buffer Counts { uint counts[]; };
void main() { counts[1] = (counts[0] + 7u) / 8u; counts[2] = 1u; counts[3] = 1u; }
)");
  place.folder.write("double.comp", R"(#version 430
layout(local_size_x = 8) in;
layout(std430, binding = 0) buffer Kept { float kept[]; };
layout(std430, binding = 1) buffer Y { float groups[]; };
void main() {
  uint i = gl_GlobalInvocationID.x;
  if (gl_LocalInvocationIndex == 0u) groups[gl_WorkGroupID.x] = 1.0;
  kept[i] = kept[i] * 2.0;
}
)");
  const std::string head =
      "tensors.x = { input = \"x.npy\" }\ntensors.y = { output = \"y.npy\" }\n"
      "tensors.kept = { output = \"kept.npy\", shape = [100] }\n"
      "tensors.counts = { output = \"counts.npy\", shape = [4], dtype = \"uint32\" }\n";
  const auto kernel = [](const std::string& name, const std::string& bindings, const std::string& grid) {
    return "[[pipeline.step]]\nname = \"" + name + "\"\nop = \"kernel\"\nsource = \"" + name +
           ".comp\"\nbindings = [ " + bindings + " ]\ngrid = " + grid + "\n";
  };
  const auto text = [&](const std::string& grid) {
    return pipeline(head) + kernel("keep", "{ input = \"x\" }, { output = \"kept\" }, { output = \"counts\" }", "[2]") +
           kernel("size", "{ inout = \"counts\" }", "[1]") +
           kernel("double", "{ inout = \"kept\" }, { output = \"y\", shape = [20] }", grid);
  };
  const Finished finished = place.run(text("{ input = \"counts\", first = 1 }"), {"--repeat", "3"});
  INFO(finished.err << finished.out);
  REQUIRE(finished.status == 0);
  const auto groups = place.result("y.npy");
  CHECK(std::count(groups.begin(), groups.end(), 1.0f) == 8);  // of the 60 that were kept
  CHECK(groups[7] == 1);
  CHECK(groups[8] == 0);
  const auto kept = place.result("kept.npy");
  CHECK(std::count_if(kept.begin(), kept.end(), [](float value) { return value >= 80; }) == 60);

  const Finished late = place.run(text("{ input = \"counts\", first = 2 }"));
  CHECK(late.status != 0);
  CHECK_THAT(late.err, Contains("pipeline 'chain': step 'double'") && Contains("begins at element 2 of 4"));
  const Finished wrong = place.run(text("{ input = \"x\" }"));
  CHECK_THAT(wrong.err, Contains("tensor 'x' is float32 [100], expected uint32 [100]"));
  const Finished above = place.run(text("{ values = [70000, 0, 1] }"));
  CHECK(above.status == 1);
  CHECK_THAT(above.out, Contains("reads grid x = 70000, expected 0 to 65535"));
}

TEST_CASE("a result that a loop exchanges holds zeros before each run") {
  const PipelinePlace place;
  place.folder.write("part.comp", R"(#version 430
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer X { float x[]; };
layout(std430, binding = 1) buffer Y { float y[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < 50) y[i] += x[i] + 1.0; }
)");
  const std::string text =
      pipeline(ends) +
      "[[pipeline.step]]\nname = \"part\"\nop = \"kernel\"\nsource = \"part.comp\"\ngrid = [2]\n"
      "bindings = [ { input = \"x\" }, { output = \"y\", shape = [100] } ]\nrepeat = 2\nswap = [\"x\", \"y\"]\n";
  for (const char* repeat : {"1", "2", "5"}) {
    const Finished finished = place.run(text, {"--repeat", repeat});
    INFO("--repeat " << repeat << ": " << finished.err << finished.out);
    REQUIRE(finished.status == 0);
    // Round 1: y = x + 1, and exchanged. Round 2: y = x, which was 0, 1, …, plus (x + 1) + 1, and exchanged back.
    const auto y = place.result("y.npy");
    for (std::size_t i = 0; i < 100; ++i) {
      INFO(i);
      CHECK(y[i] == (i < 50 ? static_cast<float>(i) + 1 : 0));
    }
  }
}

TEST_CASE("a pipeline of layers is compared with a chain in double precision, on each device") {
  const TemporaryFolder folder;
  const std::string device = GENERATE("cpu", "opengl:0");
  const auto layer = [](const std::string& name, const std::string& from, const std::string& to, int c, int k) {
    return "[[pipeline.step]]\nname = \"" + name + "\"\nop = \"conv2d\"\nc = " + std::to_string(c) +
           "\nh = 10\nw = 12\nk = " + std::to_string(k) + "\nr = 3\ns = 3\npad = 1\nactivation = \"relu\"\n" +
           "weights = \"random:2\"\ninput = \"" + from + "\"\noutput = \"" + to + "\"\n";
  };
  const std::string text =
      "[[pipeline]]\nname = \"net\"\ntensors.x = { input = \"random:1\", shape = [1, 4, 10, 12] }\n"
      "tensors.y = { output = \"y.npy\" }\n" +
      layer("a", "x", "a", 4, 8) + layer("b", "a", "b", 8, 8) +
      "[[pipeline.step]]\nname = \"classes\"\nop = \"gemm\"\nm = 1\nn = 5\nk = 960\nweights = \"random:3\"\n"
      "input = \"b\"\noutput = \"y\"\n";
  const std::string file = folder.write("net.toml", text);
  for (const char* verify : {"--verify", "--verify=steps"}) {
    const Finished finished =
        run_kiln({"run", file, "--json", verify, "--device", device, "--cache-dir", folder / "cache"});
    INFO(finished.err << finished.out);
    REQUIRE(finished.status == 0);
    const auto json = finished.json();
    const auto& job = json["jobs"][0];
    CHECK(job["verified"] == true);
    CHECK(job["error_bound"] > job["max_rel_error"]);
    CHECK(job["device"]["id"] == device);
    for (const auto& step : job["steps"]) {
      if (std::string(verify) == "--verify") {
        CHECK(step["verified"].is_null());
      } else {
        CHECK(step["verified"] == true);
      }
    }
  }
  const Finished explained = run_kiln({"selector", "explain", file, "--json", "--cache-dir", folder / "cache"});
  INFO(explained.err);
  REQUIRE(explained.status == 0);
  const auto net = explained.json()["jobs"][0];
  CHECK(net["name"] == "net");
  CHECK_THAT(net["bucket"].get<std::string>(), Catch::Matchers::Matches("pipeline [0-9a-f]{32}"));
  for (const auto& candidate : net["candidates"]) {
    if (candidate["device"] == device) CHECK(candidate["evidence"] == "2 first runs, no later one");
  }
}

namespace {

// Convolutions around a residual sum, then classes.
const std::string small_network = R"(
[[pipeline]]
name = "net"
tensors.image = { input = "random:1", shape = [1, 3, 21, 18] }
tensors.logits = { output = "logits.npy" }
tensors.classes = { output = "classes.npy" }
step = [
  { name = "stem", op = "conv2d", input = "image", output = "a", c = 3, h = 21, w = 18, k = 16, r = 3, s = 3, pad = 1, activation = "relu6", weights = "he:2", bias = "random:3" },
  { name = "pool", op = "pool2d", input = "a", output = "b", c = 16, h = 21, w = 18, pool = "max", r = 3, s = 3, stride = 2, pad = 1 },
  { name = "wide", op = "conv2d", input = "b", output = "c", c = 16, h = 11, w = 9, k = 32, r = 1, s = 1, activation = "relu6", weights = "he:4" },
  { name = "depthwise", op = "conv2d", input = "c", output = "d", c = 32, h = 11, w = 9, k = 32, r = 3, s = 3, pad = 1, groups = 32, weights = "he:5" },
  { name = "rectify", op = "activation", input = "d", output = "e", shape = [1, 32, 11, 9], activation = "relu" },
  { name = "narrow", op = "conv2d", input = "e", output = "f", c = 32, h = 11, w = 9, k = 16, r = 1, s = 1, weights = "he:6" },
  { name = "sum", op = "add", input = "f", addend = "b", output = "g", shape = [1, 16, 11, 9] },
  { name = "mean", op = "pool2d", input = "g", output = "h", c = 16, h = 11, w = 9, pool = "average" },
  { name = "fc", op = "gemm", input = "h", output = "logits", m = 1, n = 10, k = 16, weights = "he:7", bias = "random:8" },
  { name = "softmax", op = "softmax", input = "logits", output = "classes", shape = [1, 10] },
]
)";

}  // namespace

TEST_CASE("a network of all layers is compared with a chain in double precision, on each device") {
  const TemporaryFolder folder;
  const std::string device = GENERATE("cpu", "opengl:0");
  const Finished finished = run_kiln({"run", folder.write("net.toml", small_network), "--json", "--verify=steps",
                                      "--device", device, "--cache-dir", folder / "cache"});
  INFO(finished.err << finished.out);
  REQUIRE(finished.status == 0);
  const auto json = finished.json();
  const auto& job = json["jobs"][0];
  CHECK(job["verified"] == true);
  CHECK(job["elements"]["compared"] == 2 * 20);  // logits and classes, with the chain and with the jobs
  CHECK(job["error_bound"] < 0.01);
  REQUIRE(job["steps"].size() == 10);
  for (const auto& step : job["steps"]) CHECK(step["verified"] == true);
  const auto read = kiln::data::read_npy(folder / "classes.npy");
  REQUIRE(read);
  double sum = 0;
  for (const float value : (*read)->as<float>()) sum += value;
  CHECK(sum == Approx(1));
}

TEST_CASE("a bound that says nothing is refused, unless the result has a tolerance") {
  const PipelinePlace place;
  auto large = kiln::HostTensor::create(kiln::DType::f32, {100}).value();
  for (float& value : large->as<float>()) value = 1e7f;  // its sums may be off by 2: so may the odds be, by e^4
  REQUIRE(kiln::data::write_npy(place.folder / "large.npy", *large).ok());
  const std::string steps =
      "step = [ { name = \"sum\", op = \"add\", input = \"x\", addend = \"x\", output = \"twice\", shape = [100] },\n"
      "{ name = \"softmax\", op = \"softmax\", input = \"twice\", output = \"y\", shape = [100] } ]\n";
  const std::string begin =
      "[[pipeline]]\nname = \"chain\"\nverify = true\ndevice = \"cpu\"\n"
      "tensors.x = { input = \"large.npy\" }\n";
  const Finished refused = place.run(begin + "tensors.y = { output = \"y.npy\" }\n" + steps);
  CHECK(refused.status != 0);
  CHECK_THAT(refused.err + refused.out,
             Contains("tensor 'y': the rounding errors of the steps may add up to") && Contains("Set a tolerance"));
  CHECK_FALSE(fs::exists(place.folder / "y.npy"));
  const Finished given = place.run(begin + "tensors.y = { output = \"y.npy\", tolerance = 1e-5 }\n" + steps);
  INFO(given.err << given.out);
  CHECK(given.status == 0);
  CHECK(place.result("y.npy")[99] == Approx(0.01));
  CHECK(given.json()["jobs"][0]["error_bound"] == Approx(1e-5));
  CHECK(place.run(begin + "tensors.y = { output = \"y.npy\" }\n" + steps, {"--verify=steps"}).status == 0);
  const std::string ramp =
      "[[pipeline]]\nname = \"chain\"\nverify = true\ndevice = \"cpu\"\n"
      "tensors.x = { input = \"x.npy\" }\n";
  const Finished wrong = place.run(ramp + "tensors.y = { output = \"y.npy\", tolerance = 1e-12 }\n" + steps);
  CHECK(wrong.status == 1);
}

TEST_CASE("a pipeline's expected result is compared, and a wrong one writes nothing") {
  const PipelinePlace place;
  const std::string steps = step("1", "x", "output = \"y\", shape = [100]");
  REQUIRE(place.run(pipeline(ends) + steps).status == 0);
  fs::rename(place.folder / "y.npy", place.folder / "want.npy");
  const std::string text = pipeline(
      "verify = true\ntensors.x = { input = \"x.npy\" }\ntensors.y = { output = \"y.npy\", expect = \"want.npy\" }\n");
  CHECK(place.run(text + steps).json()["jobs"][0]["verified"] == true);
  fs::remove(place.folder / "y.npy");
  const Finished wrong = place.run(text + step("1", "x", "output = \"a\", shape = [100]") +
                                   step("2", "a", "output = \"y\", shape = [100]"));
  CHECK(wrong.status == 1);
  CHECK(wrong.json()["jobs"][0]["verified"] == false);
  CHECK_FALSE(fs::exists(place.folder / "y.npy"));
}

TEST_CASE("the pipelines of configs/ run and are verified") {
  const TemporaryFolder folder;
  fs::copy(fs::path(KILN_SOURCE_DIR) / "configs/pipelines", folder / "pipelines", fs::copy_options::recursive);
  fs::copy(fs::path(KILN_SOURCE_DIR) / "configs/quickstart", folder / "quickstart", fs::copy_options::recursive);
  const std::string name = GENERATE("sharpen", "scan", "heat");
  const Finished finished = run_kiln({"run", folder / ("pipelines/" + name + ".toml"), "--json", "--verify=steps",
                                      "--device", "opengl:0", "--cache-dir", folder / "cache"});
  INFO(finished.err << finished.out);
  REQUIRE(finished.status == 0);
  const auto json = finished.json();
  CHECK(json["jobs"][0]["verified"] == true);
  CHECK(json["cache"]["builds"] <= 3);
}

TEST_CASE("the whole networks of configs/ are valid, and MobileNet-v2 is right") {
  const TemporaryFolder folder;
  for (const std::string name : {"resnet50", "mobilenet_v2", "vgg16"}) {
    const std::string copy = folder / (name + ".toml");
    fs::copy(fs::path(KILN_SOURCE_DIR) / "configs/pipelines" / (name + ".toml"), copy);
    const Finished checked = run_kiln({"config", "check", copy});
    INFO(checked.err << checked.out);
    CHECK(checked.status == 0);
  }
  const Finished finished = run_kiln(
      {"run", folder / "mobilenet_v2.toml", "--json", "--verify", "--device", "cpu", "--cache-dir", folder / "cache"});
  INFO(finished.err << finished.out);
  REQUIRE(finished.status == 0);
  const auto job = finished.json()["jobs"][0];
  CHECK(job["verified"] == true);
  CHECK(job["steps"].size() == 65);
  CHECK(job["max_rel_error"] < 1e-4);
  CHECK(job["memory"]["intermediates"] <= 1.3 * job["memory"]["live"].get<double>());
}

TEST_CASE("what does not fit together in a pipeline is refused before anything runs") {
  const PipelinePlace place;
  const std::string one = step("1", "x", "output = \"y\", shape = [100]");
  const auto error_of = [&](const std::string& text) {
    const Finished finished = place.run(text);
    CHECK(finished.status == 2);
    CHECK_FALSE(fs::exists(place.folder / "y.npy"));
    return finished.err;
  };
  SECTION("a tensor of another shape") {
    CHECK_THAT(error_of(pipeline(ends) + step("1", "x", "output = \"y\", shape = [100]") +
                        step("2", "y", "output = \"y\", shape = [50]")),
               Contains("pipeline 'chain'") && Contains("step '2'") &&
                   Contains("tensor 'y' is float32 [100], the step writes float32 [50]"));
  }
  SECTION("a tensor of another type, whose shape is the step's") {
    CHECK_THAT(error_of(pipeline("tensors.x = { input = \"x.npy\" }\n"
                                 "tensors.y = { output = \"y.npy\", dtype = \"float64\" }\n") +
                        one),
               Contains("tensor 'y' is float64, the step writes float32 [100]"));
  }
  SECTION("an input that is no tensor and no file") {
    CHECK_THAT(error_of(pipeline(ends) + step("1", "photo", "output = \"y\", shape = [100]")),
               Contains("step '1'") && Contains("photo") && Contains("x, y"));
  }
  SECTION("a layer's input of another shape") {
    CHECK_THAT(error_of(pipeline(ends) +
                        "[[pipeline.step]]\nname = \"c\"\nop = \"conv2d\"\nc = 1\nh = 10\nw = 11\nk = 1\nr = 1\ns = 1\n"
                        "weights = \"random:1\"\ninput = \"x\"\noutput = \"y\"\n"),
               Contains("step 'c'") && Contains("tensor 'x' is float32 [100], expected float32 [1, 1, 10, 11]"));
  }
  SECTION("a step without a name") {
    CHECK_THAT(error_of(pipeline(ends) + "[[pipeline.step]]\nop = \"kernel\"\nsource = \"add.comp\"\ngrid = [1]\n"
                                         "bindings = [ { input = \"x\" } ]\n"),
               Contains("pipeline \"chain\", step 1: missing key name"));
  }
  SECTION("a key of the whole in a step") {
    CHECK_THAT(error_of(pipeline(ends) + step("1", "x", "output = \"y\", shape = [100]", "verify = true\n")),
               Contains("step \"1\": verify: found in a step"));
  }
  SECTION("an unknown key") {
    CHECK_THAT(error_of(pipeline("tensor.x = { input = \"x.npy\" }\n") + one),
               Contains("unknown key; nearest: tensors"));
  }
  SECTION("an unknown key of a step") {
    CHECK_THAT(error_of(pipeline(ends) + step("1", "x", "output = \"y\", shape = [100]", "repeats = 2\n")),
               Contains("repeats: unknown key"));
  }
  SECTION("no round") {
    CHECK_THAT(error_of(pipeline(ends) + step("1", "x", "output = \"y\", shape = [100]", "repeat = 0\n")),
               Contains("repeat: "));
  }
  SECTION("one name to exchange") {
    CHECK_THAT(error_of(pipeline(ends) + step("1", "x", "output = \"y\", shape = [100]", "swap = [\"x\"]\n")),
               Contains("swap: ") && Contains("names of two tensors"));
  }
  SECTION("nothing to compare with") {
    CHECK_THAT(error_of(pipeline("verify = true\n" + ends) + one), Contains("verify: no result has `expect`"));
  }
  SECTION("two results in one file") {
    CHECK_THAT(error_of(pipeline(ends + "tensors.z = { output = \"y.npy\" }\n") + one +
                        step("2", "x", "output = \"z\", shape = [100]")),
               Contains("is written twice, first by pipeline 'chain'"));
  }
  SECTION("a section instead of a list") {
    CHECK_THAT(error_of("[pipeline]\nname = \"chain\"\n"), Contains("expected [[pipeline]]"));
  }
  SECTION("no steps") { CHECK_THAT(error_of(pipeline(ends)), Contains("missing key step")); }
}

TEST_CASE("--verify takes `steps` and nothing else") {
  const PipelinePlace place;
  const Finished finished =
      place.run(pipeline(ends) + step("1", "x", "output = \"y\", shape = [100]"), {"--verify=all"});
  CHECK(finished.status == 2);
  CHECK_THAT(finished.err, Contains("--verify=all: expected --verify or --verify=steps"));
}
