#include "host/kiln_process.hpp"

#include <catch2/catch.hpp>

#include <csignal>

using namespace kiln::test;
using Catch::Matchers::Contains;

TEST_CASE("Ctrl-C ends the run by the signal, with nothing half-written") {
  const TemporaryFolder folder;
  // About a minute of work where nothing interrupts it.
  const auto file = folder.write("long.toml", R"(
[[job]]
name = "long"
op = "conv2d"
n = 4
c = 64
h = 112
w = 112
k = 64
r = 3
s = 3
pad = 1
input = "random:1"
weights = "random:2"
output = "out.npy"
)");
  ProcessOptions options;
  options.folder = folder.path();
  options.interrupt_when = "job 1 of 1";
  const Finished finished = run_kiln(
      {"run", file, "--device", "opengl:0", "--repeat", "100", "--progress", "plain", "--cache-dir", folder / "cache"},
      options);
  CHECK(finished.status == -SIGINT);
  CHECK_THAT(finished.err, Contains("interrupted"));
  CHECK_FALSE(std::filesystem::exists(folder / "out.npy"));
  const Finished next = run_kiln({"plugins", "--cache-dir", folder / "cache"});
  CHECK(next.status == 0);
}

TEST_CASE("Ctrl-C leaves what the jobs before it counted") {
  const TemporaryFolder folder;
  const std::string job =
      "[[job]]\nop = \"conv2d\"\nc = 64\nk = 64\nr = 3\ns = 3\npad = 1\ninput = \"random:1\"\n"
      "weights = \"random:2\"\n";
  // Many short runs: the job ends between two of them, soon enough also on a busy machine.
  const auto file = folder.write("two.toml", job + "name = \"short\"\nh = 8\nw = 8\n" +  //
                                                 job + "name = \"long\"\nh = 28\nw = 28\n");
  ProcessOptions options;
  options.interrupt_when = "job 2 of 2";
  const auto [finished, cache] = run_interrupted({"run", file, "--device", "opengl:0", "--repeat", "1000", "--progress",
                                                  "plain", "--set", "cache.warm=all"},
                                                 options, folder);
  INFO(finished.err);
  REQUIRE(finished.status == -SIGINT);
  const auto stats = run_kiln({"cache", "stats", "--json", "--cache-dir", cache}).json();
  INFO(stats.dump(2));
  CHECK(stats["processes"] == 1);
  CHECK(stats["misses"] >= 1);
  CHECK_THAT(run_kiln({"cache", "explain", "short", "--cache-dir", cache}).out, Contains("missed"));
  CHECK(run_kiln({"selector", "show", "--json", "--cache-dir", cache}).out.find("opengl") != std::string::npos);
}
