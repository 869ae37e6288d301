#include "host/kiln_process.hpp"

#include <catch2/catch.hpp>

using namespace kiln::test;
using Catch::Matchers::Contains;

TEST_CASE("commands that need no device load no driver, no compiler and no library of one") {
  const TemporaryFolder folder;
  const auto file = folder.write("empty.toml", "[executor]\nin_flight = 2\n");
  const std::vector<std::vector<std::string>> commands = {
      {"--help"},
      {"--version"},
      {"config", "check", file.string(), "--cache-dir", folder / "cache"},
      {"plugins", "--cache-dir", folder / "cache"},
      {"cache", "stats", "--cache-dir", folder / "cache"}};
  for (const auto& command : commands) {
    run_kiln(command);  // verdicts are remembered after the first
    // The dynamic loader's own account of every file that it opens.
    const Finished finished = run_kiln(command, {.environment = {{"LD_DEBUG", "files"}}});
    REQUIRE(finished.status == 0);
    REQUIRE_THAT(finished.err, Contains("libkiln_core.so"));
    for (const char* heavy : {"libEGL", "libGL", "libLLVM", "libdnnl", "libgomp", "swrast_dri"}) {
      INFO(command[0]);
      CHECK_THAT(finished.err, !Contains(heavy));
    }
    CHECK_THAT(finished.err, !Contains("kiln-probe"));
  }
}
