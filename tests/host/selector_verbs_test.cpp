// kiln selector show, explain, reset, replay: on what `kiln run` learned in a cache folder of the test's own.
#include "data/npy.hpp"
#include "kiln_process.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <fstream>

using namespace kiln::test;
using Catch::Matchers::Contains;

namespace {

constexpr const char* two_jobs = R"([plugins]
load = ["cpu", "opengl", "dynamic_shaders"]

[selector]
serve_while_building = false
log = true

[[job]]
name = "small"
op = "conv2d"
c = 8
h = 12
w = 12
k = 8
r = 3
s = 3
pad = 1
input = "random:1"
weights = "random:2"

[[job]]
name = "large"
op = "conv2d"
c = 32
h = 28
w = 28
k = 32
r = 3
s = 3
pad = 1
input = "random:1"
weights = "random:2"
)";

class SelectorPlace {
 public:
  SelectorPlace() : config(folder.write("jobs.toml", two_jobs)) {}
  Finished kiln(std::vector<std::string> words) const {
    words.insert(words.end(), {"--cache-dir", (folder / "cache").string()});
    return run_kiln(words);
  }

  TemporaryFolder folder;
  std::filesystem::path config;
};

}  // namespace

TEST_CASE("selector verbs: what a run learned is shown, explained, replayed and reset", "[host][selector]") {
  const SelectorPlace place;
  const Finished nothing = place.kiln({"selector", "show"});
  CHECK(nothing.status == 0);
  CHECK_THAT(nothing.out, Contains("nothing was learned yet"));
  CHECK(place.kiln({"selector", "replay"}).status == 1);

  for (int i = 0; i < 4; ++i) REQUIRE(place.kiln({"run", place.config.string(), "--repeat", "4"}).status == 0);

  const Finished shown = place.kiln({"selector", "show", "--json"});
  REQUIRE(shown.status == 0);
  const auto model = shown.json();
  CHECK(model["schema"] == 1);
  CHECK(model["exists"] == true);
  CHECK(model["rejected"].empty());
  const auto runs_on = [&](const std::string& device) {
    std::uint64_t runs = 0;
    for (const auto& arm : model["arms"]) {
      if (arm["device"] == device && arm["operation"] == "conv2d") runs += arm["runs"].get<std::uint64_t>();
    }
    return runs;
  };
  for (const auto& arm : model["arms"]) CHECK(arm["transfer_ms"].is_null() == (arm["runs"] == 0));
  CHECK(runs_on("cpu") > 0);
  CHECK(runs_on("opengl:0") > 0);
  CHECK(model["not_learned"].value("first_run", 0) > 0);
  CHECK_THAT(place.kiln({"selector", "show"}).out, Contains("3x3 dense direct f32") && Contains("first_run"));
  const auto only_cpu = place.kiln({"selector", "show", "--device", "cpu", "--json"}).json();
  REQUIRE(only_cpu["arms"].size() > 0);
  for (const auto& arm : only_cpu["arms"]) {
    CHECK(arm["device"] == "cpu");
  }

  const Finished explained = place.kiln({"selector", "explain", place.config.string(), "--json"});
  REQUIRE(explained.status == 0);
  const auto jobs = explained.json()["jobs"];
  REQUIRE(jobs.size() == 2);
  for (const auto& job : jobs) {
    REQUIRE(job["candidates"].size() == 2);
    CHECK(job["words"].size() >= 3);
    const bool is_candidate = job["device"] == "cpu" || job["device"] == "opengl:0";
    CHECK(is_candidate);
    for (const auto& candidate : job["candidates"]) CHECK(candidate["ms"]["cost"].is_number());
  }
  const Finished words = place.kiln({"selector", "explain", place.config.string()});
  CHECK_THAT(words.out, Contains("would choose") && Contains("cpu: ") && Contains("opengl:0: ") && Contains(" run"));
  CHECK(place.kiln({"selector", "show", "--json"}).json()["arms"] == model["arms"]);  // explaining changed nothing

  const Finished replayed = place.kiln({"selector", "replay", "--json"});
  REQUIRE(replayed.status == 0);
  CHECK(replayed.json()["decisions"] == 8);
  CHECK(replayed.json()["looks"].get<int>() > 0);
  CHECK(place.kiln({"selector", "replay", (place.folder / "cache").string()}).status == 0);

  const std::size_t arms = model["arms"].size();
  const auto of_cpu = static_cast<std::size_t>(std::count_if(model["arms"].begin(), model["arms"].end(),
                                                             [](const auto& arm) { return arm["device"] == "cpu"; }));
  const Finished one = place.kiln({"selector", "reset", "--device", "cpu", "--json"});
  REQUIRE(one.status == 0);
  CHECK(one.json()["removed"] == of_cpu);
  CHECK(one.json()["kept"] == arms - of_cpu);
  CHECK(place.kiln({"selector", "reset", "--json"}).json()["kept"] == 0);
  CHECK(place.kiln({"selector", "show", "--json"}).json()["arms"].empty());
}

TEST_CASE("selector verbs: explain ends with the status of the gravest failure of all jobs", "[host][selector]") {
  const SelectorPlace place;
  place.folder.write("twice.cl",
                     "kernel __attribute__((reqd_work_group_size(64, 1, 1))) void twice(global const float* x, "
                     "global float* y) { y[get_global_id(0)] = 2 * x[get_global_id(0)]; }\n");
  const std::string config = place.folder.write("failing.toml", R"([plugins]
load = ["cpu", "dynamic_shaders"]

[[job]]
name = "no device"
op = "kernel"
source = "twice.cl"
entry = "twice"
grid = [2]
bindings = [ { input = "random:1", shape = [128] }, { output = "y.npy", shape = [128] } ]

[[job]]
name = "no input"
op = "gemm"
m = 1
n = 32
k = 2
input = "large.npy"
weights = "random:2"
)");
  auto large = kiln::HostTensor::create(kiln::DType::i64, {1, 2}).value();
  std::ranges::fill(large->as<std::int64_t>(), (std::int64_t{1} << 24) + 1);  // float32 does not have it
  REQUIRE(kiln::data::write_npy(place.folder / "large.npy", *large).ok());
  const Finished explained = place.kiln({"selector", "explain", config});
  INFO(explained.err);
  CHECK_THAT(explained.err, Contains("'no device'") && Contains("'no input'"));
  CHECK(explained.status == 3);
}

TEST_CASE("selector verbs: a damaged record is refused by name, and the others are shown", "[host][selector]") {
  const SelectorPlace place;
  REQUIRE(place.kiln({"run", place.config.string(), "--repeat", "2"}).status == 0);
  const auto before = place.kiln({"selector", "show", "--json"}).json()["arms"].size();
  std::ofstream(place.folder / "cache/selector.model", std::ios::app) << "0123456789abcdef {\"operation\": 7}\n";
  const Finished shown = place.kiln({"selector", "show", "--json"});
  REQUIRE(shown.status == 0);
  CHECK(shown.json()["arms"].size() == before);
  REQUIRE(shown.json()["rejected"].size() == 1);
  const auto refused = shown.json()["rejected"][0];
  CHECK(refused["validator"] == "checksum");
  CHECK(refused["expected"] == "0123456789abcdef");
  CHECK(refused["found"].get<std::string>().size() == 16);
  CHECK_THAT(place.kiln({"selector", "show"}).out, Contains("records that were refused") && Contains("checksum"));
}

TEST_CASE("selector verbs: what is asked wrongly is a usage error", "[host][selector]") {
  const SelectorPlace place;
  CHECK(place.kiln({"selector", "explain"}).status == 2);
  CHECK(place.kiln({"selector", "show", "--repeat", "3"}).status == 2);
  CHECK(place.kiln({"selector", "sing"}).status == 2);
  CHECK(place.kiln({"selector", "reset", "--set", "cache.read_only=true"}).status == 2);
  const Finished missing = place.kiln({"selector", "replay", (place.folder / "nowhere").string()});
  CHECK(missing.status == 1);
  CHECK_THAT(missing.err, Contains("nowhere") && Contains("[selector] log = true"));
  CHECK_THAT(run_kiln({"selector", "--help"}).out, Contains("explain") && Contains("replay"));
}
