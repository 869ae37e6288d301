#include "host/kiln_process.hpp"

#include <catch2/catch.hpp>

using namespace kiln::test;
using Catch::Matchers::Contains;

TEST_CASE("config check tells every error at once with its place") {
  const TemporaryFolder folder;
  const auto file =
      folder.write("bad.toml", "[cache]\npolcy = \"lru\"\nmax_programs = \"many\"\n[executor]\nin_flight = 99\n");
  const Finished finished = run_kiln({"config", "check", file, "--cache-dir", folder / "cache"});
  CHECK(finished.status == 2);
  CHECK_THAT(finished.err, Contains("bad.toml:2:1") && Contains("polcy") && Contains("policy"));
  CHECK_THAT(finished.err, Contains("bad.toml:3:"));
  CHECK_THAT(finished.err, Contains("bad.toml:5:"));

  const Finished told = run_kiln({"config", "check", file, "--json", "--cache-dir", folder / "cache"});
  CHECK(told.status == 2);
  const auto problems = told.json()["problems"];
  REQUIRE(problems.size() == 3);
  CHECK(problems[0]["file"] == file.string());
  CHECK(problems[0]["line"] == 2);
  CHECK(problems[0]["column"] == 1);
  CHECK_THAT(problems[0]["message"].get<std::string>(), Contains("polcy"));

  const auto good = folder.write("good.toml", "");
  const Finished outside =
      run_kiln({"config", "check", good, "--json", "--set", "cache.policy=7", "--cache-dir", folder / "cache"});
  CHECK(outside.status == 2);
  CHECK(outside.json()["problems"][0]["line"].is_null());
}

TEST_CASE("a removed eviction policy is a warning that names both, of config check and of run") {
  const TemporaryFolder folder;
  const auto file = folder.write("old.toml",
                                 "[cache]\npolicy = \"wtinylfu\"\n[[job]]\nname = \"g\"\nop = \"gemm\"\nm = 4\n"
                                 "n = 4\nk = 4\ninput = \"random:1\"\nweights = \"random:2\"\ndevice = \"cpu\"\n");
  const std::string warning = "old.toml:2:10: cache.policy: \"wtinylfu\" is no longer supported: \"cost\" is used";
  const Finished checked = run_kiln({"config", "check", file, "--json", "--cache-dir", folder / "cache"});
  CHECK(checked.status == 0);
  CHECK_THAT(checked.err, Contains("warning") && Contains(warning));
  CHECK(checked.json()["problems"].empty());
  REQUIRE(checked.json()["warnings"].size() == 1);
  CHECK(checked.json()["warnings"][0]["line"] == 2);
  CHECK_THAT(checked.json()["warnings"][0]["message"].get<std::string>(), Contains("wtinylfu") && Contains("cost"));
  const Finished ran = run_kiln({"run", file, "--json", "--cache-dir", folder / "cache"});
  CHECK(ran.status == 0);
  CHECK_THAT(ran.err, Contains(warning));
  const Finished quiet = run_kiln({"run", file, "--json", "--log", "error", "--cache-dir", folder / "cache"});
  CHECK(quiet.status == 0);
  CHECK(quiet.err == "");
  const Finished set = run_kiln({"cache", "stats", "--set", "cache.policy=s3fifo", "--cache-dir", folder / "cache"});
  CHECK(set.status == 0);
  CHECK_THAT(set.err, Contains("\"s3fifo\" is no longer supported: \"cost\" is used"));
  const Finished shown = run_kiln({"config", "show", file, "--cache-dir", folder / "cache"});
  CHECK_THAT(shown.out, Contains("old.toml:2:1) cache.policy = \"cost\""));
}

TEST_CASE("config check knows the keys that plugins publish") {
  const TemporaryFolder folder;
  const auto file = folder.write("bad.toml", "[plugin.opengl]\nvector_widht = 512\n");
  const Finished finished = run_kiln({"config", "check", file, "--cache-dir", folder / "cache"});
  CHECK(finished.status == 2);
  CHECK_THAT(finished.err, Contains("bad.toml:2:1") && Contains("vector_widht") && Contains("vector_width"));
}

TEST_CASE("every shipped configuration is valid") {
  const TemporaryFolder folder;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(KILN_SOURCE_DIR) / "configs")) {
    if (entry.path().extension() != ".toml") continue;
    const Finished finished = run_kiln({"config", "check", entry.path(), "--cache-dir", folder / "cache"});
    INFO(entry.path() << "\n" << finished.err);
    CHECK(finished.status == 0);
    CHECK_THAT(finished.out, Contains("valid"));
    CHECK(run_kiln({"config", "check", entry.path(), "--json", "--cache-dir", folder / "cache"})
              .json()["problems"]
              .empty());
  }
}

TEST_CASE("config show names the origin of each value") {
  const TemporaryFolder folder;
  const auto file = folder.write("some.toml", "[cache]\nmax_programs = 7\n");
  const Finished finished = run_kiln({"config", "show", file, "--set", "executor.in_flight=2"},
                                     {.environment = {{"KILN_CACHE_DIR", folder / "cache"}}});
  CHECK(finished.status == 0);
  CHECK_THAT(finished.out, Contains("some.toml:2:1") && Contains("cache.max_programs = 7"));
  CHECK_THAT(finished.out, Contains("KILN_CACHE_DIR"));
  CHECK_THAT(finished.out, Contains("--set"));
}
