// Results of kernel jobs: which file they go to, what becomes of what is there, and what "verified" means.
#include "host/kiln_process.hpp"

#include "data/npy.hpp"

#include <catch2/catch.hpp>

#include <limits>

#include <sys/stat.h>
#include <unistd.h>

using namespace kiln;
using namespace kiln::test;
using Catch::Matchers::Contains;

namespace {

constexpr std::int64_t elements = 64;

constexpr const char* one_result = R"(#version 430
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer In { float src[]; };
layout(std430, binding = 1) buffer Out { float dst[]; };
void main() { uint i = gl_GlobalInvocationID.x; dst[i] = dst[i] + 2.0 * src[i]; }
)";

constexpr const char* two_results = R"(#version 430
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer In { float src[]; };
layout(std430, binding = 1) buffer Out { float dst[]; };
layout(std430, binding = 2) buffer Other { float other[]; };
void main() { uint i = gl_GlobalInvocationID.x; dst[i] = 2.0 * src[i]; other[i] = 3.0 * src[i]; }
)";

// A folder with the kernels, src.npy = 1, 2, 3, … and zeros.npy.
class Jobs {
 public:
  Jobs() {
    folder.write("doubling.comp", one_result);
    folder.write("two.comp", two_results);
    put("src.npy", 1);
    put("zeros.npy", 0);
    put("twice.npy", 2);
    put("thrice.npy", 3);
  }

  // (i + 1) * scale
  void put(const std::string& name, float scale) const {
    auto tensor = HostTensor::create(DType::f32, {elements}).value();
    float next = 1;
    for (float& value : tensor->as<float>()) value = scale * next++;
    REQUIRE(data::write_npy(folder / name, *tensor).ok());
  }
  float last(const std::string& name) const {
    const auto tensor = data::read_npy(folder / name);
    REQUIRE(tensor);
    return (*tensor)->as<float>()[elements - 1];
  }
  bool exists(const std::string& name) const { return std::filesystem::exists(folder / name); }

  Finished run(const std::string& bindings, const std::string& more = "", const std::string& source = "doubling.comp",
               const std::vector<std::string>& options = {}) const {
    return run_text(job("mine", bindings, more, source), options);
  }
  static std::string job(const std::string& name, const std::string& bindings, const std::string& more = "",
                         const std::string& source = "doubling.comp") {
    return "[[job]]\nname = \"" + name + "\"\nop = \"kernel\"\nsource = \"" + source +
           "\"\ndevice = \"opengl:0\"\nbindings = [ { input = \"src.npy\" }, " + bindings + " ]\ngrid = [1]\n" + more +
           "\n";
  }
  Finished run_text(const std::string& text, const std::vector<std::string>& options = {}) const {
    std::vector<std::string> words{"run", folder.write("job.toml", text).string(), "--json", "--cache-dir",
                                   (folder / "cache").string()};
    words.insert(words.end(), options.begin(), options.end());
    return run_kiln(std::move(words));
  }

  const TemporaryFolder folder;
};

constexpr float whole = 2 * elements;

}  // namespace

TEST_CASE("results: an output is created, begins as zeros, and the job runs twice") {
  const Jobs jobs;
  for (int round = 0; round < 2; ++round) {
    const Finished finished =
        jobs.run(R"({ output = "new/out.npy", shape = [64], expect = "twice.npy" })", "verify = true");
    INFO(finished.err << finished.out);
    REQUIRE(finished.status == 0);
    CHECK(finished.json()["jobs"][0]["verified"] == true);
    CHECK(finished.json()["jobs"][0]["elements"]["compared"] == elements);
    CHECK(finished.json()["jobs"][0]["elements"]["wrong"] == 0);
    CHECK(jobs.last("new/out.npy") == whole);
  }
}

TEST_CASE("results: inout with output reads one file and writes another; inout alone writes back") {
  const Jobs jobs;
  for (int round = 0; round < 2; ++round) {
    REQUIRE(jobs.run(R"({ inout = "zeros.npy", output = "out.npy" })").status == 0);
    CHECK(jobs.last("zeros.npy") == 0);
    CHECK(jobs.last("out.npy") == whole);
  }
  for (int round = 1; round <= 2; ++round) {
    REQUIRE(jobs.run(R"({ inout = "zeros.npy" })").status == 0);
    CHECK(jobs.last("zeros.npy") == static_cast<float>(round) * whole);
  }
}

TEST_CASE("results: symbolic links are followed") {
  const Jobs jobs;
  std::filesystem::create_directory(jobs.folder / "far");
  const auto link = [&](const std::string& target) {
    std::filesystem::remove(jobs.folder / "out.npy");
    std::filesystem::create_symlink(target, jobs.folder / "out.npy");
  };
  const std::string to_out = R"({ output = "out.npy", shape = [64] })";
  SECTION("to a file that is there") {
    jobs.put("far/real.npy", 7);
    link("far/real.npy");
    REQUIRE(jobs.run(to_out).status == 0);
    CHECK(jobs.last("far/real.npy") == whole);
  }
  SECTION("to nothing yet") {
    link("far/real.npy");
    REQUIRE(jobs.run(to_out).status == 0);
    CHECK(jobs.last("far/real.npy") == whole);
  }
  SECTION("through another link") {
    std::filesystem::create_symlink("far/real.npy", jobs.folder / "middle.npy");
    link("middle.npy");
    REQUIRE(jobs.run(to_out).status == 0);
    CHECK(jobs.last("far/real.npy") == whole);
    CHECK(std::filesystem::is_symlink(jobs.folder / "middle.npy"));
  }
  SECTION("in place") {
    jobs.put("far/real.npy", 0);
    link("far/real.npy");
    REQUIRE(jobs.run(R"({ inout = "out.npy" })").status == 0);
    CHECK(jobs.last("far/real.npy") == whole);
  }
  SECTION("to a folder that is not there") {
    link("nowhere/real.npy");
    const Finished finished = jobs.run(to_out);
    CHECK(finished.status == 2);
    CHECK_THAT(finished.err, Contains("nowhere/real.npy") && Contains("symbolic link"));
  }
  SECTION("in a circle") {
    link("out.npy");
    const Finished finished = jobs.run(to_out);
    CHECK(finished.status == 2);
    CHECK_THAT(finished.err, Contains("out.npy") && Contains("more than 40 symbolic links"));
  }
  CHECK(std::filesystem::is_symlink(jobs.folder / "out.npy"));
}

TEST_CASE("results: a file that is there keeps its mode; what is no plain file is refused") {
  const Jobs jobs;
  const std::string to_out = R"({ output = "out.npy", shape = [64] })";
  const std::filesystem::path out = jobs.folder / "out.npy";
  SECTION("mode") {
    for (const mode_t mode : {0600, 0640, 0664, 0755}) {
      jobs.put("out.npy", 7);
      REQUIRE(chmod(out.c_str(), mode) == 0);
      REQUIRE(jobs.run(to_out).status == 0);
      struct stat found {};
      REQUIRE(stat(out.c_str(), &found) == 0);
      CHECK((found.st_mode & 07777) == mode);
      CHECK(jobs.last("out.npy") == whole);
    }
  }
  SECTION("owner") {
    if (geteuid() != 0) return;
    jobs.put("out.npy", 7);
    REQUIRE(chown(out.c_str(), 65534, 65534) == 0);
    REQUIRE(jobs.run(to_out).status == 0);
    struct stat found {};
    REQUIRE(stat(out.c_str(), &found) == 0);
    CHECK(found.st_uid == 65534);
    CHECK(found.st_gid == 65534);
  }
  SECTION("refused") {
    const auto refused = [&](const std::string& word) {
      const Finished finished = jobs.run(to_out);
      CHECK(finished.status == 2);
      CHECK_THAT(finished.err, Contains("out.npy") && Contains(word) && Contains("job.toml:"));
    };
    REQUIRE(mkfifo(out.c_str(), 0600) == 0);
    refused("FIFO");
    std::filesystem::remove(out);
    std::filesystem::create_directory(out);
    refused("folder");
    std::filesystem::remove(out);
    jobs.put("other.npy", 7);
    std::filesystem::create_hard_link(jobs.folder / "other.npy", out);
    refused("2 hard links");
    CHECK(jobs.last("other.npy") == 7 * elements);
  }
}

TEST_CASE("results: two results in one file are refused, by whatever names") {
  const Jobs jobs;
  const auto refused = [&](const Finished& finished, const std::string& word) {
    INFO(finished.err << finished.out);
    CHECK(finished.status == 2);
    CHECK_THAT(finished.err, Contains(word) && Contains("job.toml:"));
  };
  std::filesystem::create_symlink("out.npy", jobs.folder / "link.npy");
  std::filesystem::create_symlink(".", jobs.folder / "here");
  for (const char* other : {"out.npy", "./out.npy", "link.npy", "here/out.npy"}) {
    const std::string both =
        R"({ output = "out.npy", shape = [64] }, { output = ")" + std::string(other) + R"(", shape = [64] })";
    refused(jobs.run(both, "", "two.comp"), "another result of the job");
  }
  refused(jobs.run(R"({ output = "src.npy", shape = [64] })"), "an input of the job");
  const std::string twice = Jobs::job("a", R"({ output = "out.npy", shape = [64] })") +
                            Jobs::job("b", R"({ output = "link.npy", shape = [64] })");
  refused(jobs.run_text(twice), "is already written by job 'a', and no job in between reads the file");
  CHECK_FALSE(jobs.exists("out.npy"));
  // What a job between them reads is not lost, and jobs may pass a file on.
  const std::string chain = Jobs::job("a", R"({ output = "out.npy", shape = [64] })") +
                            Jobs::job("b", R"({ inout = "out.npy" })") + Jobs::job("c", R"({ inout = "out.npy" })");
  CHECK(jobs.run_text(chain).status == 0);
  CHECK(jobs.last("out.npy") == 3 * whole);
}

TEST_CASE("results: a job that fails writes nothing, unless keep_failed says so") {
  const Jobs jobs;
  const std::string both = R"({ output = "a.npy", shape = [64], expect = "twice.npy" },
    { output = "b.npy", shape = [64], expect = "twice.npy" })";
  Finished finished = jobs.run(both, "verify = true", "two.comp");
  CHECK(finished.status == 1);
  CHECK_FALSE(jobs.exists("a.npy"));
  CHECK_FALSE(jobs.exists("b.npy"));
  const auto result = finished.json()["jobs"][0];
  CHECK(result["verified"] == false);
  CHECK(result["elements"]["compared"] == 2 * elements);
  CHECK(result["elements"]["wrong"] == elements);
  CHECK(result["elements"]["worst"]["output"] == "b.npy");
  CHECK_THAT(result["error"].get<std::string>(), Contains("64 of 128 elements are wrong") && Contains("b.npy at ["));
  finished = jobs.run(both, "verify = true\nkeep_failed = true", "two.comp");
  CHECK(finished.status == 1);
  CHECK(jobs.last("a.npy") == whole);
  CHECK(jobs.last("b.npy") == 3 * elements);
  CHECK_THAT(finished.json()["jobs"][0]["notes"].dump(), Contains("keep_failed"));
}

TEST_CASE("verification: each output has its own reference and tolerance") {
  const Jobs jobs;
  jobs.put("near.npy", 3.003f);
  const auto run = [&](const std::string& second, const std::string& more = "") {
    return jobs.run(
        R"({ output = "a.npy", shape = [64], expect = "twice.npy" }, { output = "b.npy", shape = [64])" + second + " }",
        "verify = true\n" + more, "two.comp");
  };
  CHECK(run(R"(, expect = "thrice.npy")").status == 0);
  CHECK(run(R"(, expect = "near.npy")").status == 1);
  CHECK(run(R"(, expect = "near.npy", tolerance = 2e-3)").status == 0);
  CHECK(run(R"(, expect = "near.npy", tolerance = { absolute = 0.2 })").status == 0);
  CHECK(run(R"(, expect = "near.npy", tolerance = { absolute = 0.1 })").status == 1);
  CHECK(run(R"(, expect = "near.npy")", "tolerance = 2e-3").status == 0);
  const Finished partly = run("");
  CHECK(partly.status == 0);
  CHECK_THAT(partly.json()["jobs"][0]["notes"].dump(), Contains("b.npy was not compared"));
}

TEST_CASE("verification: without a reference it is an error") {
  const Jobs jobs;
  const std::string to_out = R"({ output = "out.npy", shape = [64] })";
  const Finished by_file = jobs.run(to_out, "verify = true");
  CHECK(by_file.status == 2);
  CHECK_THAT(by_file.err, Contains("job.toml:8:") && Contains("expect"));
  const Finished by_option = jobs.run(to_out, "", "doubling.comp", {"--verify"});
  CHECK(by_option.status != 0);
  CHECK_THAT(by_option.out + by_option.err, Contains("mine") && Contains("expect"));
  CHECK_FALSE(jobs.exists("out.npy"));
}

TEST_CASE("verification: one large element hides no other, and infinities match") {
  const Jobs jobs;
  auto want = HostTensor::create(DType::f32, {elements}).value();
  float next = 1;
  for (float& value : want->as<float>()) value = 2 * next++;
  want->as<float>()[3] = 1e9f;
  REQUIRE(data::write_npy(jobs.folder / "want.npy", *want).ok());
  auto source = HostTensor::create(DType::f32, {elements}).value();
  for (float& value : source->as<float>()) value = 0;
  source->as<float>()[3] = 5e8f;
  REQUIRE(data::write_npy(jobs.folder / "src.npy", *source).ok());
  const std::string result = R"({ output = "out.npy", shape = [64], expect = "want.npy" })";
  const Finished hidden = jobs.run(result, "verify = true");
  CHECK(hidden.status == 1);
  CHECK(hidden.json()["jobs"][0]["elements"]["wrong"] == elements - 1);
  for (const float special : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                              std::numeric_limits<float>::quiet_NaN()}) {
    source->as<float>()[3] = special;
    want = HostTensor::create(DType::f32, {elements}).value();
    want->as<float>()[3] = special;
    REQUIRE(data::write_npy(jobs.folder / "src.npy", *source).ok());
    REQUIRE(data::write_npy(jobs.folder / "want.npy", *want).ok());
    CHECK(jobs.run(result, "verify = true").status == 0);
    want->as<float>()[3] = 1;
    REQUIRE(data::write_npy(jobs.folder / "want.npy", *want).ok());
    CHECK(jobs.run(result, "verify = true").status == 1);
  }
}
