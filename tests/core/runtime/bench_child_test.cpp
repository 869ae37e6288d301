// What the child of a bench answers: its main loop in this process, and the real kiln-probe.
#include "runtime/autotuner.hpp"
#include "runtime/child_protocols.hpp"
#include "runtime/probe_main.hpp"

#include "core/runtime/runtime_fixture.hpp"
#include "data/npy.hpp"
#include "support/copied_fixture.hpp"

#include <kiln/buffer.hpp>
#include <kiln/plugin_loader.hpp>

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace kiln::test {
namespace {

using std::chrono::seconds;

// The child's main loop in this process, with the plugins of a fixture device and its generator.
struct FixtureBench {
  RuntimeFixture place;  // for its folder
  BenchSetup setup;
  mutable int prepared = 0;  // how often the last answers() heard that something was

  FixtureBench() {
    for (const char* plugin : {"fixture", "fixture_generator"}) {
      setup.sources.plugin_path = copied_fixture(plugin, place.folder()).parent_path().string();
    }
    setup.sources.environment.clear();
    setup.sources.set = {"plugins.load=[\"fixture\", \"fixture_generator\"]", "plugins.required=[]",
                         "generator.name=fixture_generator", "plugin.fixture.opencl_c=true"};
    setup.sources.cache_directory = (place.folder() / "cache").string();
    setup.device = "fixture:0";
  }
  // The job "scaled" of a kernel that writes FACTOR times x.npy, which holds 1 to 16; want.npy holds the triple.
  void use_kernel(const std::string& bindings) {
    const auto tensor = HostTensor::create(DType::f32, {16}).value();
    for (std::size_t i = 0; i < 16; ++i) tensor->as<float>()[i] = static_cast<float>(i + 1);
    for (const char* name : {"x.npy", "y.npy"}) REQUIRE(data::write_npy(place.folder() / name, *tensor).ok());
    for (std::size_t i = 0; i < 16; ++i) tensor->as<float>()[i] *= 3;
    REQUIRE(data::write_npy(place.folder() / "want.npy", *tensor).ok());
    std::ofstream(place.folder() / "scale.cl") << "scale";
    std::ofstream(place.folder() / "jobs.toml") << R"(
[[job]]
name = "layer"
op = "gemm"
m = 2
n = 3
k = 4
input = "random:1"
weights = "random:2"

[[job]]
name = "scaled"
op = "kernel"
source = "scale.cl"
tune = { FACTOR = [2, 3, 5], MODE = [0, 1] }
workgroup = [16]
grid = [1]
bindings = )" << bindings << "\n";
    setup.sources.file = place.folder() / "jobs.toml";
    setup.subject = std::string("scaled");
  }
  std::vector<Result<VariantSamples>> answers(const std::vector<std::string>& lines, int ends_with = 0) const {
    std::string said = to_line(setup);
    for (const std::string& line : lines) said += line + "\n";
    std::istringstream input(said);
    std::vector<Result<VariantSamples>> heard;
    prepared = 0;
    const int status = bench_child(input, [&](const std::string& line) {
      prepared += line == std::string(bench_prepared) + "\n" ? 1 : 0;
      if (line != std::string(bench_preparing) + "\n" && line != std::string(bench_prepared) + "\n") {
        heard.push_back(answer_of(line));
      }
      return true;
    });
    CHECK(status == ends_with);
    return heard;
  }
};

// What is wrong with an answer; "ok".
std::string text_of_answer(const Result<VariantSamples>& answer) { return answer ? "ok" : answer.error().text(); }

off_t bytes_in(const UniqueFd& file) {
  struct stat at {};
  return fstat(file.get(), &at) == 0 ? at.st_size : -1;
}

}  // namespace

TEST_CASE("runtime::bench_child: measures a layer and compares it with its reference", "[runtime][tuning]") {
  FixtureBench bench;
  if (GENERATE(false, true)) {
    GemmSpec gemm{5, 4, 7};
    gemm.bias = Bias::per_channel;
    bench.setup.subject = gemm;
  } else {
    Conv2dSpec conv;
    conv.c = 4, conv.h = conv.w = 6, conv.k = 3, conv.r = conv.s = 3;
    conv.bias = Bias::per_channel;
    bench.setup.subject = conv;
  }
  SECTION("right") {
    const auto answers = bench.answers({"fixture/forward\t3", "fixture/other\t1", "no tab", "fixture/forward\t",
                                        "fixture/forward\t1 2", "fixture/forward\t1"});
    REQUIRE(answers.size() == 6);
    REQUIRE(text_of_answer(answers[0]) == "ok");
    CHECK(answers[0]->wall_ns.size() == 3);
    CHECK(answers[0]->device_ns.size() == 3);
    CHECK_FALSE(answers[0]->source_digest.empty());
    CHECK(answers[0]->error_bound > 0);
    CHECK(answers[0]->max_rel_error > 0);  // it adds in another order than the reference
    CHECK(answers[0]->max_rel_error <= answers[0]->error_bound);
    CHECK(bench.prepared == 1);  // one reference for all
    CHECK(answers[0]->agreement == 0);
    CHECK_THAT(text_of_answer(answers[1]), Catch::Contains("fixture/other"));
    CHECK(text_of_answer(answers[2]) == "invalid_argument: bench: found 'no tab', expected VARIANT and RUNS");
    CHECK_THAT(text_of_answer(answers[3]), Catch::Contains("expected VARIANT and RUNS"));
    CHECK_THAT(text_of_answer(answers[4]), Catch::Contains("expected VARIANT and RUNS"));
    REQUIRE(text_of_answer(answers[5]) == "ok");
    CHECK(answers[5]->wall_ns.size() == 1);
  }
  SECTION("wrong at the run that does not count, or at the last") {
    const int wrong_at = GENERATE(1, 3);
    bench.setup.sources.set.push_back("plugin.fixture.wrong_at=" + std::to_string(wrong_at));
    const auto answers = bench.answers({"fixture/forward\t2", "fixture/forward\t2"});
    REQUIRE(answers.size() == 2);
    CHECK_THAT(text_of_answer(answers[0]), Catch::StartsWith("corrupt: wrong: "));
    CHECK(text_of_answer(answers[1]) == "ok");
  }
}

TEST_CASE("runtime::bench_child: groups kernel variants by outputs, which a later process reads", "[runtime][tuning]") {
  FixtureBench bench;
  bench.use_kernel("[ { input = \"x.npy\" }, { inout = \"y.npy\" } ]");
  const UniqueFd outputs(memfd_create("outputs", MFD_CLOEXEC));
  REQUIRE(outputs.get() >= 0);
  bench.setup.outputs = outputs.get();
  const auto groups_of = [&](const std::vector<std::string>& variants) {
    std::vector<std::string> lines;
    for (const std::string& variant : variants) lines.push_back("user:" + variant + "\t1");
    std::vector<std::uint32_t> groups;
    for (const Result<VariantSamples>& answer : bench.answers(lines)) {
      CHECK(text_of_answer(answer) == "ok");
      groups.push_back(answer ? answer->agreement : 0);
    }
    return groups;
  };
  using Groups = std::vector<std::uint32_t>;
  CHECK(groups_of({"FACTOR=2,MODE=0", "FACTOR=3,MODE=0", "FACTOR=2,MODE=1"}) == Groups{1, 2, 1});
  CHECK(bytes_in(outputs) == 128);  // two groups of 16 numbers
  CHECK(groups_of({"FACTOR=3,MODE=1", "FACTOR=5,MODE=0", "FACTOR=2,MODE=0"}) == Groups{2, 3, 1});
  CHECK(bytes_in(outputs) == 192);
  REQUIRE(ftruncate(outputs.get(), 64 + 7) == 0);  // as where a process was killed while it wrote the second
  CHECK(groups_of({"FACTOR=5,MODE=0", "FACTOR=2,MODE=0"}) == Groups{2, 1});
  CHECK(bytes_in(outputs) == 128);
  CHECK(groups_of({"FACTOR=3,MODE=0", "FACTOR=5,MODE=1"}) == Groups{3, 2});

  bench.setup.outputs = -1;  // nothing is kept
  CHECK(groups_of({"FACTOR=3,MODE=0"}) == Groups{1});
  CHECK(bytes_in(outputs) == 192);
}

TEST_CASE("runtime::bench_child: outputs of several results are kept one behind the other", "[runtime][tuning]") {
  FixtureBench bench;
  bench.use_kernel("[ { inout = \"x.npy\" }, { inout = \"y.npy\" } ]");
  const UniqueFd outputs(memfd_create("outputs", MFD_CLOEXEC));
  REQUIRE(outputs.get() >= 0);
  bench.setup.outputs = outputs.get();
  const auto groups_of = [&](const std::string& first, const std::string& second) {
    std::vector<std::uint32_t> groups;
    for (const auto& answer :
         bench.answers({"user:FACTOR=" + first + ",MODE=0\t1", "user:FACTOR=" + second + ",MODE=0\t1"})) {
      CHECK(text_of_answer(answer) == "ok");
      groups.push_back(answer ? answer->agreement : 0);
    }
    return groups;
  };
  CHECK(groups_of("2", "3") == std::vector<std::uint32_t>{1, 2});
  CHECK(bytes_in(outputs) == 256);  // two groups of two results
  CHECK(groups_of("3", "2") == std::vector<std::uint32_t>{2, 1});
  CHECK(bytes_in(outputs) == 256);
  CHECK(bench.prepared == 0);
}

TEST_CASE("runtime::bench_child: outputs that cannot be kept or read are the answer", "[runtime][tuning]") {
  FixtureBench bench;
  bench.use_kernel("[ { input = \"x.npy\" }, { inout = \"y.npy\" } ]");
  const std::filesystem::path file = bench.place.folder() / "outputs";
  const bool reads = GENERATE(true, false);
  std::ofstream(file) << std::string(reads ? 0 : 64, '\0');
  const UniqueFd outputs(::open(file.c_str(), (reads ? O_RDONLY : O_WRONLY) | O_CLOEXEC));
  REQUIRE(outputs.get() >= 0);
  bench.setup.outputs = outputs.get();
  const auto answers = bench.answers({"user:FACTOR=2,MODE=0\t1"}, reads ? 0 : 3);
  REQUIRE(answers.size() == 1);
  CHECK_THAT(text_of_answer(answers[0]),
             Catch::EndsWith(reads ? "bench: an output cannot be written: Bad file descriptor"
                                   : "bench: outputs cannot be read: Bad file descriptor"));
}

TEST_CASE("runtime::bench_child: leaves the file of metrics to its parent", "[runtime][tuning]") {
  FixtureBench bench;
  bench.setup.subject = GemmSpec{5, 4, 7};
  const std::filesystem::path metrics = bench.place.folder() / "metrics.prom";
  bench.setup.sources.set.push_back("metrics.file=\"" + metrics.string() + "\"");
  const auto answers = bench.answers({"fixture/forward\t1"});
  REQUIRE(answers.size() == 1);
  CHECK(text_of_answer(answers[0]) == "ok");
  CHECK_FALSE(std::filesystem::exists(metrics));
}

TEST_CASE("runtime::bench_child: keeps what is known of plugins, and no program of a variant", "[runtime][tuning]") {
  const bool read_only = GENERATE(false, true);
  FixtureBench bench;
  bench.setup.subject = GemmSpec{5, 4, 7};
  if (read_only) bench.setup.sources.set.push_back("cache.read_only=true");
  const auto answers = bench.answers({"fixture/forward\t1"});
  REQUIRE(answers.size() == 1);
  CHECK(text_of_answer(answers[0]) == "ok");
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& at :
       std::filesystem::recursive_directory_iterator(bench.setup.sources.cache_directory.value(), error)) {
    if (at.is_regular_file()) files.push_back(at.path().filename().string());
  }
  CHECK(files == (read_only ? std::vector<std::string>{} : std::vector<std::string>{"probe_verdicts.json"}));
}

TEST_CASE("runtime::bench_child: compares a kernel's results with what is expected, and groups the others",
          "[runtime][tuning]") {
  FixtureBench bench;
  const UniqueFd outputs(memfd_create("outputs", MFD_CLOEXEC));
  REQUIRE(outputs.get() >= 0);
  bench.setup.outputs = outputs.get();
  const std::string judged = "{ output = \"o.npy\", shape = [16], dtype = \"float32\", expect = \"want.npy\" }";
  const bool all = GENERATE(true, false);
  bench.use_kernel(all ? "[ { input = \"x.npy\" }, " + judged + " ]" : "[ { inout = \"x.npy\" }, " + judged + " ]");
  const auto answers = bench.answers({"user:FACTOR=2,MODE=0\t1", "user:FACTOR=3,MODE=1\t2", "user:FACTOR=4,MODE=0\t1"});
  REQUIRE(answers.size() == 3);
  CHECK_THAT(text_of_answer(answers[0]), Catch::StartsWith("corrupt: wrong: 16 of 16 elements are wrong; worst in "));
  REQUIRE(text_of_answer(answers[1]) == "ok");
  CHECK(answers[1]->wall_ns.size() == 2);
  CHECK(answers[1]->agreement == (all ? 0u : 1u));
  CHECK(bytes_in(outputs) == (all ? 0 : 64));
  CHECK_THAT(text_of_answer(answers[2]), Catch::Contains("there is no variant 'user:FACTOR=4,MODE=0'"));
}

TEST_CASE("runtime::bench_child: a kernel's output that differs from run to run is wrong", "[runtime][tuning]") {
  FixtureBench bench;
  bench.use_kernel("[ { input = \"x.npy\" }, { inout = \"y.npy\" } ]");
  bench.setup.sources.set.push_back("plugin.fixture.wrong_at=2");
  const auto answers = bench.answers({"user:FACTOR=2,MODE=0\t1", "user:FACTOR=2,MODE=0\t1"});
  REQUIRE(answers.size() == 2);
  CHECK(text_of_answer(answers[0]) == "corrupt: wrong: the output differs from run to run");
  CHECK(text_of_answer(answers[1]) == "ok");
}

TEST_CASE("runtime::bench_child: where it cannot be prepared every answer says why, and no variant is to blame",
          "[runtime][tuning]") {
  FixtureBench bench;
  bench.use_kernel("[ { input = \"x.npy\" }, { inout = \"y.npy\" } ]");
  std::string why;
  SECTION("the configuration") {
    bench.setup.sources.set.push_back("cache.policy=\"nonsense\"");
    why = "nonsense";
  }
  SECTION("no such job") {
    bench.setup.subject = std::string("absent");
    why = "bench: job 'absent' does not exist";
  }
  SECTION("a layer's job") {
    bench.setup.subject = std::string("layer");
    why = "bench: job 'layer' has no user kernel";
  }
  SECTION("a kernel without results") {
    bench.use_kernel("[ { input = \"x.npy\" }, { input = \"y.npy\" } ]");
    why = "job 'scaled' has no output or inout, expected at least one to compare the variants";
  }
  SECTION("a file that is not there") {
    std::filesystem::remove(bench.place.folder() / "x.npy");
    why = "x.npy";
  }
  const auto answers = bench.answers({"user:FACTOR=2,MODE=0\t1", "nonsense"}, 3);
  REQUIRE(answers.size() == 2);
  for (const Result<VariantSamples>& answer : answers) {
    REQUIRE_FALSE(answer);
    CHECK(answer.error().code == StatusCode::unavailable);
    CHECK_THAT(answer.error().message, Catch::StartsWith("bench: ") && Catch::Contains(why));
  }
}

TEST_CASE("runtime::bench_child: ends where nobody hears it", "[runtime][tuning]") {
  int said = 0;
  const auto status_of = [&](const std::string& lines, int heard) {
    std::istringstream input(lines);
    said = 0;
    return bench_child(input, [&](const std::string&) { return ++said <= heard; });
  };
  CHECK(status_of("", 0) == 2);
  CHECK(said == 0);
  CHECK(status_of("no JSON\n", 9) == 3);
  CHECK(said == 0);
  CHECK(status_of("no JSON\na\nb\nc\n", 1) == 4);
  CHECK(said == 2);
}

TEST_CASE("runtime::bench_child: the real kiln-probe measures a layer", "[runtime][tuning]") {
  FixtureBench bench;
  bench.setup.subject = GemmSpec{5, 4, 7};
  BenchProcess process(PluginLoader::default_probe(), bench.setup);
  for (int i = 0; i < 2; ++i) {
    const auto samples = process.measure("fixture/forward", 2, seconds(60));
    REQUIRE(text_of_answer(samples) == "ok");
    CHECK(samples->wall_ns.size() == 2);
    CHECK(samples->max_rel_error <= samples->error_bound);
    CHECK_FALSE(samples->source_digest.empty());
    CHECK(samples->agreement == 0);
  }
  CHECK_THAT(text_of_answer(process.measure("fixture/other", 1, seconds(60))), Catch::Contains("fixture/other"));
}

TEST_CASE("runtime::bench_child: outputs of one real child are compared with those of the next", "[runtime][tuning]") {
  FixtureBench bench;
  bench.use_kernel("[ { input = \"x.npy\" }, { inout = \"y.npy\" } ]");
  BenchProcess process(PluginLoader::default_probe(), bench.setup);
  const auto group_of = [&](const std::string& variant) {
    const auto samples = process.measure("user:" + variant, 1, seconds(60));
    CHECK(text_of_answer(samples) == "ok");
    return samples ? samples->agreement : 0u;
  };
  CHECK(group_of("FACTOR=2,MODE=0") == 1);
  process.rest();
  CHECK(group_of("FACTOR=3,MODE=0") == 2);
  CHECK(group_of("FACTOR=2,MODE=1") == 1);
}

}  // namespace kiln::test
