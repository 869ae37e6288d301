// `kiln tune` on a kernel of the user's own that leaves parameters open.
#include "host/kiln_process.hpp"

#include "data/npy.hpp"

#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <utility>

using namespace kiln;
using namespace kiln::test;
using Catch::Matchers::Contains;

namespace {

// MODE 0 and 1 compute y = A * x + y in two ways; 2 is wrong in one element, 3 does not compile.
constexpr const char* kernel = R"(#version 430
layout(local_size_x = TILE) in;
layout(std430, binding = 0) readonly buffer X { float x[]; };
layout(std430, binding = 1) buffer Y { float y[]; };
void main() {
  uint i = gl_GlobalInvocationID.x;
  if (i >= N) return;
#if MODE == 0
  y[i] = A * x[i] + y[i];
#elif MODE == 1
  y[i] += x[i] * A;
#elif MODE == 2
  y[i] = A * x[i] + y[i] + (i == 77u ? 1.0 : 0.0);
#else
  this is no GLSL
#endif
}
)";

constexpr const char* tuned_job = R"(
[[job]]
name = "mine"
op = "kernel"
source = "mine.comp"
constants = { A = 2.5, N = 4000 }
tune = { TILE = [16, 64], MODE = [0, 1, 2, 3] }
bindings = [ { input = "x.npy" }, { inout = "y.npy" } ]
grid = ["(N + TILE - 1) / TILE"]
)";

struct TunedPlace {
  TemporaryFolder folder;

  TunedPlace() {
    folder.write("mine.comp", kernel);
    for (const char* name : {"x.npy", "y.npy"}) {
      auto tensor = HostTensor::create(DType::f32, {4000});
      const std::span<float> values = (*tensor)->as<float>();
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 97) + (*name == 'x' ? 1 : 2);
      REQUIRE(data::write_npy(folder / name, **tensor).ok());
    }
  }
  Finished tune(const std::string& text = tuned_job) {
    return run_kiln({"tune", folder.write("mine.toml", text), "--json", "--device", "opengl:0", "--cache-dir",
                     folder / "cache", "--budget", "300 s"});
  }
  std::vector<float> y() {
    const auto tensor = data::read_npy(folder / "y.npy");
    REQUIRE(tensor.has_value());
    const auto values = (*tensor)->as<float>();
    return {values.begin(), values.end()};
  }
};

}  // namespace

TEST_CASE("tune: a kernel's parameters are tried in a child, wrong ones rejected, and the winner serves") {
  TunedPlace place;
  const std::vector<float> before = place.y();
  const Finished tuned = place.tune();
  INFO(tuned.err << tuned.out);
  REQUIRE(tuned.status == 0);
  const auto result = tuned.json()["jobs"][0];
  CHECK(result["error"].is_null());
  CHECK(result["space"] == 8);
  CHECK(result["candidates"] == 8);
  CHECK(result["ms"] > 0);
  REQUIRE(result["rejected"].size() == 4);
  int wrong = 0, refused = 0;
  for (const auto& each : result["rejected"]) {
    const std::string text = each;
    wrong += text.find("MODE=2: 4 of 6 variants agree with one another and differ") != std::string::npos;
    refused += text.find("MODE=3: invalid_argument") != std::string::npos;
  }
  CHECK(wrong == 2);
  CHECK(refused == 2);
  const std::string winner = result["variant"];
  CHECK((winner.ends_with("MODE=0") || winner.ends_with("MODE=1")));
  CHECK(place.y() == before);  // the job's own files are read only

  const Finished run = run_kiln(
      {"run", place.folder / "mine.toml", "--json", "--device", "opengl:0", "--cache-dir", place.folder / "cache"});
  INFO(run.err);
  REQUIRE(run.status == 0);
  CHECK(run.json()["jobs"][0]["variant"] == winner);
  CHECK(run.json()["cache"]["builds"] == 0);  // it was built before it was chosen
  const std::vector<float> after = place.y();
  bool right = true;
  for (std::size_t i = 0; i < after.size(); ++i) right = right && after[i] == 2.5f * (before[i] - 1) + before[i];
  CHECK(right);

  const Finished again = place.tune();
  INFO(again.err << again.out);
  REQUIRE(again.status == 0);
  CHECK(again.json()["jobs"][0]["candidates"] == 0);
  CHECK(again.json()["jobs"][0]["known"] == 8);

  std::string wider = tuned_job;
  wider.replace(wider.find("[16, 64]"), 8, "[16, 64, 8]");
  const Finished more = place.tune(wider);
  REQUIRE(more.status == 0);
  CHECK(more.json()["jobs"][0]["candidates"] == 6);  // the new value's own, and the two that were outvoted
  CHECK(more.json()["jobs"][0]["known"] == 6);

  const Finished audited = run_kiln({"tune", "audit", place.folder / "mine.toml", "--json", "--device", "opengl:0",
                                     "--cache-dir", place.folder / "cache"});
  INFO(audited.err << audited.out);
  CHECK(audited.json()["winners"] == 1);
  REQUIRE(audited.json()["audited"].size() == 1);
  CHECK(audited.json()["audited"][0]["variant"] == more.json()["jobs"][0]["variant"]);
  CHECK(audited.json()["audited"][0]["error"].is_null());
  CHECK(audited.json()["audited"][0]["wall_ms"] > 0);
}

namespace {

// y = 2 x over 64 elements, but for what `body` says of a variant.
struct Doubling {
  TemporaryFolder folder;

  explicit Doubling(const std::string& body, const std::string& keys, bool expect = false) {
    folder.write("double.comp",
                 "#version 430\nlayout(local_size_x = WG) in;\n"
                 "layout(std430, binding = 0) readonly buffer In { float src[]; };\n"
                 "layout(std430, binding = 1) buffer Out { float dst[]; };\n"
                 "void main() {\n  uint i = gl_GlobalInvocationID.x;\n  if (i >= 64u) return;\n" +
                     body + "}\n");
    write("src.npy", 1);
    write("dst.npy", 0);
    write("want.npy", 2);
    folder.write("double.toml",
                 "[[job]]\nname = \"double\"\nop = \"kernel\"\nsource = \"double.comp\"\n"
                 "bindings = [ { input = \"src.npy\" }, { inout = \"dst.npy\" } ]\n"
                 "grid = [\"(64 + WG - 1) / WG\"]\n" +
                     keys + (expect ? "\nexpect = \"want.npy\"\nverify = true\n" : "\n"));
  }
  void write(const std::string& name, float factor) const {
    auto tensor = HostTensor::create(DType::f32, {64});
    const std::span<float> values = (*tensor)->as<float>();
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = factor * static_cast<float>(i + 1);
    REQUIRE(data::write_npy(folder / name, **tensor).ok());
  }
  Finished kiln(const std::string& verb) const {
    return run_kiln({verb, folder / "double.toml", "--json", "--device", "opengl:0", "--cache-dir", folder / "cache"});
  }
  bool is_doubled() const {
    const auto tensor = data::read_npy(folder / "dst.npy");
    REQUIRE(tensor.has_value());
    const auto values = std::as_const(**tensor).as<float>();
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i] != 2 * static_cast<float>(i + 1)) return false;
    }
    return true;
  }
};

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("tune: a first variant that fails in any way stops nothing, and run serves with one that works") {
  struct Row {
    std::string body, tune, bad;
    bool runs;  // the untuned job, too: the variant cannot be built
  };
  const std::string plain = "  dst[i] = 2.0 * src[i];\n";
  const std::vector<Row> rows = {
      {plain, "tune = { WG = [2048, 64, 32] }", "user:WG=2048", true},
      {"  dst[i] = FACTOR * src[i];\n", "tune = { FACTOR = [\"two\", 2.0], WG = [64, 32] }", "user:FACTOR=two,WG=64",
       true},
      {"#if MODE == 0\n  this is no GLSL\n#endif\n" + plain, "tune = { MODE = [0, 1, 2], WG = [32] }",
       "user:MODE=0,WG=32", true},
      {"#if WG == 128\n#error not this one\n#endif\n" + plain, "tune = { WG = [128, 64, 32] }", "user:WG=128", true},
      {"  dst[i] = (WG == 16 ? 3.0 : 2.0) * src[i];\n", "tune = { WG = [16, 64, 32] }", "user:WG=16", false},
  };
  for (const Row& row : rows) {
    for (const bool expect : {true, false}) {
      INFO(row.tune << row.body << ", with expect: " << expect);
      const std::string& bad = row.bad;
      const Doubling job(row.body, row.tune, expect);
      if (row.runs) {
        const Finished untuned = job.kiln("run");
        INFO(untuned.err << untuned.out);
        REQUIRE(untuned.status == 0);
        CHECK(untuned.json()["jobs"][0]["variant"] != bad);
        CHECK_THAT(untuned.json()["jobs"][0]["notes"].dump(), Contains(bad) && Contains("cannot run here"));
        CHECK(job.is_doubled());
        job.write("dst.npy", 0);
      }
      const Finished tuned = job.kiln("tune");
      INFO(tuned.err << tuned.out);
      REQUIRE(tuned.status == 0);
      const auto result = tuned.json()["jobs"][0];
      const std::string winner = result["variant"];
      CHECK(winner != bad);
      CHECK_THAT(result["rejected"].dump(), Contains(bad));
      CHECK(count_of(result["rejected"].dump(), bad + ": ") == 1);
      const Finished run = job.kiln("run");
      INFO(run.err << run.out);
      REQUIRE(run.status == 0);
      CHECK(run.json()["jobs"][0]["variant"] == winner);
      CHECK(job.is_doubled());
    }
  }
}

TEST_CASE("tune and run: where no variant can be built the message lists each once, with a short reason") {
  const Doubling job("  dst[i] = nothing * src[i];\n", "tune = { WG = [64, 32, 16] }");
  for (const char* verb : {"tune", "run"}) {
    const Finished failed = job.kiln(verb);
    INFO(failed.err << failed.out);
    CHECK(failed.status == 1);
    const std::string error = failed.json()["jobs"][0]["error"];
    for (const char* variant : {"user:WG=64", "user:WG=32", "user:WG=16"}) CHECK(count_of(error, variant) == 1);
    CHECK(count_of(error, "`nothing' undeclared") == 1);
  }
}

TEST_CASE("tune: without expect the largest group that agrees is right; a tie is an error without a winner") {
  const std::string body = "  dst[i] = (WG == 64 ? 1.0 : 2.0) * src[i];\n";
  const Doubling job(body, "tune = { WG = [64, 32, 16, 8] }");
  const Finished tuned = job.kiln("tune");
  INFO(tuned.err << tuned.out);
  REQUIRE(tuned.status == 0);
  CHECK_THAT(tuned.json()["jobs"][0]["rejected"].dump(),
             Contains("user:WG=64: 3 of 4 variants agree with one another and differ from user:WG=64; set expect"));
  REQUIRE(job.kiln("run").status == 0);
  CHECK(job.is_doubled());

  const Doubling tie(body, "tune = { WG = [64, 32] }");
  const Finished undecided = tie.kiln("tune");
  INFO(undecided.err << undecided.out);
  CHECK(undecided.status == 1);
  CHECK_THAT(undecided.json()["jobs"][0]["error"].get<std::string>(),
             Contains("user:WG=64") && Contains("user:WG=32") && Contains("set expect to decide"));
  std::ofstream(tie.folder / "double.toml", std::ios::app) << "expect = \"want.npy\"\n";
  const Finished decided = tie.kiln("tune");
  INFO(decided.err << decided.out);
  REQUIRE(decided.status == 0);
  CHECK(decided.json()["jobs"][0]["variant"] == "user:WG=32");
  CHECK_THAT(decided.json()["jobs"][0]["rejected"].dump(), Contains("user:WG=64: corrupt: wrong"));
}

TEST_CASE("tune: each of 100 planted errors in a variant's output is found, with and without expect") {
  // Variants 0 to 7 are right: 0 and 1 are exact in two ways, the others are off by less than the tolerance. Each other
  // one has an error at a place that its seed decides; no more than three of those have the same one.
  const std::string body = R"(
  float right = 2.0 * src[i];
  float allowed = 1.0e-3 + 1.0e-4 * right;
  uint place = (uint(SEED) * 2654435761u >> 8) % 64u;
  uint other = (place + 1u + uint(SEED) % 62u) % 64u;
#if SEED == 1
  right = src[i] + src[i];
#elif SEED < 8
  if (i == place) right -= 0.45 * allowed;
#elif SEED % 7 == 0
  if (i == place) right += 1.0;
#elif SEED % 7 == 1
  if (i / 8u == place / 8u) right *= 1.5;
#elif SEED % 7 == 2
  right = 2.0 * src[(i + 1u + place % 62u) % 64u];
#elif SEED % 7 == 3
  if (i == place) right = 2.0 * src[other];
  if (i == other) right = 2.0 * src[place];
#elif SEED % 7 == 4
  if (i == place) right = uintBitsToFloat(0x7fc00000u);
#elif SEED % 7 == 5
  if (i == place) right = uintBitsToFloat((SEED & 8) != 0 ? 0x7f800000u : 0xff800000u);
#else
  if (i == place) right += 1.01 * allowed;
#endif
  dst[i] = right;
)";
  constexpr int right = 8, all = 108;
  std::string seeds;
  for (int seed = 0; seed < all; ++seed) seeds += (seed == 0 ? "" : ", ") + std::to_string(seed);
  for (const bool expect : {true, false}) {
    INFO("with expect: " << expect);
    const Doubling job(
        body, "tune = { SEED = [" + seeds + "], WG = [64] }\n" + "tolerance = { absolute = 1e-3, relative = 1e-4 }",
        expect);
    const Finished tuned = run_kiln({"tune", job.folder / "double.toml", "--json", "--device", "opengl:0",
                                     "--cache-dir", job.folder / "cache", "--budget", "120 s"});
    INFO(tuned.err << tuned.out);
    REQUIRE(tuned.status == 0);
    const auto result = tuned.json()["jobs"][0];
    CHECK(result["candidates"] == all);
    CHECK(result["rejected"].size() == all - right);
    const std::string rejected = result["rejected"].dump();
    for (int seed = right; seed < all; ++seed) {
      const std::string variant = "\"user:SEED=" + std::to_string(seed) + ",WG=64: ";
      if (count_of(rejected, variant) != 1) FAIL_CHECK("not found: " << variant);
    }
    const std::string winner = result["variant"];
    CHECK(count_of(rejected, "\"" + winner + ": ") == 0);
  }
}

TEST_CASE("tune: in-place data begins anew for every variant and every run, and a changed expect is judged anew") {
  // Right only if dst holds its file's contents at each run.
  const Doubling job("  dst[i] += (WG == 8 ? 2.5 : 2.0) * src[i];\n", "tune = { WG = [64, 32, 16, 8] }", true);
  const Finished tuned = job.kiln("tune");
  INFO(tuned.err << tuned.out);
  REQUIRE(tuned.status == 0);
  CHECK(tuned.json()["jobs"][0]["rejected"].size() == 1);
  const Finished same = job.kiln("tune");
  REQUIRE(same.status == 0);
  CHECK(same.json()["jobs"][0]["known"] == 4);
  job.write("want.npy", 2.5);
  const Finished changed = job.kiln("tune");
  INFO(changed.err << changed.out);
  REQUIRE(changed.status == 0);
  CHECK(changed.json()["jobs"][0]["known"] == 0);
  CHECK(changed.json()["jobs"][0]["variant"] == "user:WG=8");
}

TEST_CASE("tune: a resource that the job does not provide is named, once") {
  const Doubling job("  dst[i] = (WG + extra[0]) * src[i];\n", "tune = { WG = [64, 32] }");
  std::ifstream in(job.folder / "double.comp");
  std::string text(std::istreambuf_iterator<char>(in), {});
  text.insert(text.find("void main"), "layout(std430, binding = 5) readonly buffer Extra { float extra[]; };\n");
  job.folder.write("double.comp", text);
  const Finished tuned = job.kiln("tune");
  INFO(tuned.err << tuned.out);
  CHECK(tuned.status == 1);
  CHECK(count_of(tuned.json()["jobs"][0]["error"], "storage block Extra") == 1);
}

TEST_CASE("tune: a kernel without parameters has nothing to choose from") {
  TunedPlace place;
  std::string text = tuned_job;
  text.replace(text.find("tune = { TILE = [16, 64], MODE = [0, 1, 2, 3] }"), 47, "");
  text.replace(text.find("N = 4000"), 8, "N = 4000, TILE = 64, MODE = 0");
  const Finished tuned = place.tune(text);
  INFO(tuned.err << tuned.out);
  CHECK(tuned.status == 0);
  CHECK_THAT(tuned.json()["jobs"][0]["error"].get<std::string>(), Contains("expected the key `tune` in the job"));
}
