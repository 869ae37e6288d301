// kiln cache explain, persist, export and import as a person and as OpenGL meet them.
#include "host/sample_jobs.hpp"
#include "host/stored_cache.hpp"

#include <catch2/catch.hpp>

#include <fstream>

using namespace kiln::test;
using Catch::Matchers::Contains;

namespace {

// A machine as far as Kiln can tell: a cache folder and a key of its own.
struct Machine {
  TemporaryFolder folder;
  Finished kiln(std::vector<std::string> words, std::map<std::string, std::string> environment = {}) const {
    words.insert(words.end(), {"--cache-dir", folder / "cache"});
    environment.emplace("KILN_KEY_FILE", folder / "key of this machine");
    return run_kiln(std::move(words), {.environment = std::move(environment)});
  }
  Finished run(std::vector<std::string> more = {}, std::map<std::string, std::string> environment = {},
               const std::string& jobs = tiny_layer) const {
    std::vector<std::string> words = {"run", folder.write("tiny.toml", jobs), "--json", "--device", "opengl:0"};
    words.insert(words.end(), more.begin(), more.end());
    return kiln(std::move(words), std::move(environment));
  }
};

std::string programs_in_words(int count) { return std::to_string(count) + (count == 1 ? " program" : " programs"); }

}  // namespace

TEST_CASE("kiln cache export and import: a second machine runs on OpenGL without a build") {
  const Machine first, second;
  const Finished cold = first.run();
  INFO(cold.err);
  REQUIRE(cold.status == 0);
  const int programs = cold.json()["cache"]["builds"];
  REQUIRE(programs > 0);
  const std::string counted = programs_in_words(programs);
  const std::string bundle = first.folder / "programs.kiln";
  const Finished made = first.kiln({"cache", "export", bundle, "--json"});
  INFO(made.err);
  REQUIRE(made.status == 0);
  CHECK(made.json()["programs"] == programs);
  const std::string key = made.json()["public_key"];
  CHECK(first.kiln({"cache", "export", "--show-key"}).out == key + "\n");
  CHECK_THAT(first.kiln({"cache", "export", bundle}).out, Contains(counted) && Contains("signed with key " + key));

  const Finished distrusted =
      second.kiln({"cache", "import", bundle, "--trust",
                   second.kiln({"cache", "export", "--show-key", "--json"}).json()["public_key"]});
  CHECK(distrusted.status == 1);
  CHECK_THAT(distrusted.err, Contains("signed by key " + key) && Contains("expected the trusted key"));
  CHECK(second.kiln({"cache", "list", "--json"}).json()["programs"].empty());

  const Finished taken = second.kiln({"cache", "import", bundle, "--trust", key, "--json"});
  INFO(taken.err);
  REQUIRE(taken.status == 0);
  CHECK(taken.json()["programs"] == programs);
  const Finished warm = second.run();
  INFO(warm.err);
  REQUIRE(warm.status == 0);
  CHECK(warm.json()["cache"]["builds"] == 0);
  CHECK(warm.json()["cache"]["disk_hits"] == programs);
  CHECK(warm.json()["jobs"][0]["program"]["tier"] == "disk");
  CHECK(warm.json()["jobs"][0]["verified"] == true);
  CHECK_THAT(second.kiln({"cache", "import", bundle, "--trust", key}).out, Contains("already stored: " + counted));
}

TEST_CASE("kiln cache import: for another driver it is refused with both named, and nothing is placed") {
  const Machine first, second;
  REQUIRE(first.run({}, {{"LP_NATIVE_VECTOR_WIDTH", "128"}}).status == 0);
  const std::string bundle = first.folder / "programs.kiln";
  const auto made = first.kiln({"cache", "export", bundle, "--json"}).json();
  const Finished refused =
      second.kiln({"cache", "import", bundle, "--trust", made["public_key"]}, {{"LP_NATIVE_VECTOR_WIDTH", "256"}});
  CHECK(refused.status == 1);
  CHECK_THAT(refused.err, Contains("programs for llvmpipe") && Contains("128 bits") && Contains("256 bits"));
  CHECK(second.kiln({"cache", "list", "--json"}).json()["programs"].empty());
}

TEST_CASE("kiln cache: auto_save = false sets aside, and persist stores") {
  const Machine machine;
  const std::vector<std::string> no_saving = {"--set", "cache.auto_save=false"};
  const int programs = machine.run(no_saving).json()["cache"]["builds"];
  REQUIRE(programs > 0);
  CHECK(machine.run(no_saving).json()["cache"]["builds"] == programs);
  const std::string counted = programs_in_words(programs);
  CHECK_THAT(machine.kiln({"cache", "list"}).out, Contains("(pending)") && Contains(counted + " pending"));
  const auto stats = machine.kiln({"cache", "stats", "--json"}).json();
  CHECK(stats["pending"]["programs"] == programs);
  CHECK(stats["programs"] == 0);
  CHECK_THAT(machine.kiln({"cache", "stats"}).out,
             Contains("\nwaiting for kiln cache persist") && Contains(" " + std::to_string(programs) + "  "));
  const auto listed = machine.kiln({"cache", "list", "--json"}).json()["programs"];
  REQUIRE(listed.size() == static_cast<std::size_t>(programs));
  CHECK_THAT(machine.kiln({"cache", "inspect", listed[0]["key"]}).out,
             Contains("pending: kiln cache persist stores the program"));
  CHECK(machine.kiln({"cache", "persist", "nobody"}).status == 1);
  const Finished persisted = machine.kiln({"cache", "persist", "tiny"});
  INFO(persisted.err);
  CHECK(persisted.status == 0);
  CHECK_THAT(persisted.out, Contains("stored " + counted + ", ") && Contains("; 0 pending"));
  CHECK(machine.run(no_saving).json()["cache"]["builds"] == 0);
  CHECK(machine.kiln({"cache", "persist"}).out == "nothing is pending\n");
  CHECK(machine.kiln({"cache", "persist", "--json"}).json()["stored"] == 0);
}

TEST_CASE("kiln cache: what is pending is cleared with the rest, and told apart") {
  const Machine machine;
  const int programs = machine.run({"--set", "cache.auto_save=false"}).json()["cache"]["builds"];
  REQUIRE(programs > 0);
  CHECK_THAT(machine.kiln({"cache", "clear"}).out,
             Catch::StartsWith("removed 0 programs, " + std::to_string(programs) + " pending: "));
  CHECK(machine.kiln({"cache", "clear"}).out == "removed nothing\n");
}

TEST_CASE("kiln cache explain: the field and both values, for people and for machines") {
  const TemporaryFolder folder;
  StoredCache cache(folder);
  cache.build({"one"});
  cache.build({"one"}, "2.0");
  const Finished text = cache.kiln_cache({"explain", cache.key_of("one", "2.0").substr(0, 12)});
  INFO(text.err);
  CHECK(text.status == 0);
  CHECK_THAT(text.out, Contains("layer one/direct") && Contains("driver_changed") && Contains("it is stored now"));
  CHECK_THAT(text.out, Contains("driver.version") && Contains("2.0") && Contains("1.0"));
  const auto json = cache.kiln_cache({"explain", "layer one", "--json"}).json();
  REQUIRE(json["misses"].size() == 2);
  CHECK(json["misses"][0]["reason"] == "driver_changed");
  REQUIRE(json["misses"][0]["differences"].size() == 1);
  CHECK(json["misses"][0]["differences"][0]["field"] == "driver.version");
  CHECK(json["misses"][0]["differences"][0]["asked"] == "2.0");
  CHECK(json["misses"][0]["differences"][0]["stored"] == "1.0");
  CHECK(json["misses"][1]["nearest"].is_null());
  const Finished unknown = cache.kiln_cache({"explain", "nobody"});
  CHECK(unknown.status == 1);
  CHECK_THAT(unknown.err, Contains("'nobody'") && Contains("no miss"));
}

// llvmpipe told to make other code is another driver as far as programs go; every program that was kept for the one is
// counted, none is handed to the other, and the one's are still there.
TEST_CASE("a driver whose identity changed finds every program driver_changed, and is handed none") {
  const Machine machine;
  REQUIRE(machine.run({}, {{"LP_NATIVE_VECTOR_WIDTH", "256"}}, tiny_gemm("tiny")).json()["cache"]["builds"] == 1);
  const Finished changed = machine.run({}, {{"LP_NATIVE_VECTOR_WIDTH", "128"}}, tiny_gemm("tiny"));
  INFO(changed.err);
  REQUIRE(changed.status == 0);
  const auto cache = changed.json()["cache"];
  CHECK(cache["rejected"]["driver_changed"] == 1);
  CHECK(cache["disk_hits"] == 0);
  CHECK(cache["builds"] == 1);
  CHECK(changed.json()["jobs"][0]["verified"] == true);
  const auto explained = machine.kiln({"cache", "explain", "tiny", "--json"}).json();
  CHECK(explained["misses"][0]["reason"] == "driver_changed");
  CHECK(explained["misses"][0]["differences"][0]["field"] == "driver.LP_NATIVE_VECTOR_WIDTH");
  CHECK(machine.run({}, {{"LP_NATIVE_VECTOR_WIDTH", "256"}}, tiny_gemm("tiny")).json()["cache"]["disk_hits"] == 1);
}

// Both rasterize in software, on this host: one device under two drivers. softpipe keeps no programs of its own, and
// offers OpenGL 4.3 only where it is told to.
TEST_CASE("softpipe finds every program of llvmpipe's driver_changed, and is handed none") {
  const Machine machine;
  const std::map<std::string, std::string> as_far_as = {
      {"LIBGL_ALWAYS_SOFTWARE", "1"}, {"MESA_GL_VERSION_OVERRIDE", "4.5"}, {"MESA_GLSL_VERSION_OVERRIDE", "450"}};
  const auto with = [&](const char* driver) {
    auto environment = as_far_as;
    environment["GALLIUM_DRIVER"] = driver;
    return environment;
  };
  const std::string jobs = tiny_gemm("tiny") + tiny_gemm("of three rows", 3) + tiny_gemm("of five rows", 5);
  REQUIRE(machine.run({}, with("llvmpipe"), jobs).json()["cache"]["builds"] == 3);
  const Finished soft = machine.run({"--set", "device.fallback=never"}, with("softpipe"), jobs);
  INFO(soft.out + soft.err);
  REQUIRE(soft.status == 0);
  const auto report = soft.json();
  const auto& cache = report["cache"];
  CHECK(cache["rejected"]["driver_changed"] == 3);
  CHECK(cache["missing"]["absent"] == 0);
  CHECK(cache["disk_hits"] == 0);
  CHECK(cache["memory_hits"] == 0);
  for (const auto& job : report["jobs"]) CHECK(job["verified"] == true);
  const auto missed = machine.kiln({"cache", "explain", "tiny", "--json"}).json()["misses"][0];
  CHECK(missed["reason"] == "driver_changed");
  CHECK(missed["differences"][1]["field"] == "driver.renderer");
  CHECK(missed["differences"][1]["asked"] == "softpipe");
  CHECK(missed["differences"][1]["stored"] == "llvmpipe");
  CHECK(machine.run({}, with("llvmpipe"), jobs).json()["cache"]["disk_hits"] == 3);
}
