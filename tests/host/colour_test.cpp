#include "host/kiln_process.hpp"

#include <catch2/catch.hpp>

using namespace kiln::test;
using Catch::Matchers::Contains;

namespace {

// What a run says of its one job, which fails: the only words that have a colour.
std::string table_of_failure(StandardOutput output, std::map<std::string, std::string> environment) {
  const TemporaryFolder folder;
  const auto file = folder.write("failing.toml", R"(
[[job]]
name = "tiny"
op = "gemm"
m = 2
n = 2
k = 2
input = "random:1"
weights = "random:2"
)");
  environment.try_emplace("TERM", "xterm");
  environment.try_emplace("NO_COLOR", "");  // as if it were not there
  // Not the CPU: it may have finished a job of this size when the wait begins.
  const Finished finished =
      run_kiln({"run", file, "--device", "opengl:0", "--set", "executor.timeout=1 ns", "--cache-dir", folder / "cache"},
               {.environment = std::move(environment), .output = output});
  INFO(finished.err);
  CHECK(finished.status == 1);
  CHECK_THAT(finished.out, Contains("failed") && Contains("took longer than 1 ns"));
  return finished.out;
}

}  // namespace

TEST_CASE("the table has colour on a terminal, and only there") {
  CHECK_THAT(table_of_failure(StandardOutput::terminal, {}), Contains("\033[31mfailed\033[0m"));
  CHECK_THAT(table_of_failure(StandardOutput::pipe, {}), !Contains("\033"));
}

TEST_CASE("NO_COLOR and a dumb terminal have none") {
  CHECK_THAT(table_of_failure(StandardOutput::terminal, {{"NO_COLOR", "1"}}), !Contains("\033"));
  CHECK_THAT(table_of_failure(StandardOutput::terminal, {{"TERM", "dumb"}}), !Contains("\033"));
}
