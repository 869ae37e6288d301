// [generator] background, in an application that embeds Kiln: a process of its own, its child the real kiln-probe.
#include "host/kiln_process.hpp"
#include "host/sample_jobs.hpp"
#include "host/tuning_records.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace kiln::test;
using Catch::Matchers::Contains;

namespace {

Finished embed(const TemporaryFolder& folder, const std::string& how) {
  const std::string settings =
      "[device]\nprefer = \"opengl:0\"\n[selector]\nexploration = 1.0\n[generator]\nbackground = true\n";
  return run_process({std::string(KILN_BINARY_DIR) + "/tests/kiln_test_embedder",
                      folder.write("served.toml", settings + conv_3x3("served", {16, 16, 32})), folder / "cache", how},
                     {.environment = {{"KILN_KEY_FILE", folder / "key"}}});
}

}  // namespace

TEST_CASE("background tuning: the first job has the default, a later one a winner that was stored before it served") {
  const TemporaryFolder folder;
  const Finished finished = embed(folder, "tuned");
  INFO(finished.err << finished.out);
  REQUIRE(finished.status == 0);
  const auto told = finished.json();
  REQUIRE(told["before"].size() == 1);
  CHECK(told["before"][0]["status"] == "ok");
  CHECK(told["before"][0]["verified"] == true);
  REQUIRE(told["tuned"] == true);
  CHECK(told["spent_ms"] > 0.0);
  CHECK(told["after"][0]["verified"] == true);
  CHECK(told["after"][0]["tier"] == "memory");
  CHECK(told["builds_after"] == 0);
  CHECK(told["children"] == 0);
  const auto lines = tuning_lines(folder / "cache/tuning.tsv");
  const auto winner = std::ranges::find(lines, "winner", &TuningLine::verdict);
  REQUIRE(winner != lines.end());
  CHECK(winner->variant() == told["after"][0]["variant"]);
  CHECK_THAT(finished.err, Contains("tuning: ") && Contains(winner->variant()));

  // Another process has the winner without building, and finds nothing to measure.
  const Finished next = run_kiln({"run", folder / "served.toml", "--json", "--cache-dir", folder / "cache"},
                                 {.environment = {{"KILN_KEY_FILE", folder / "key"}}});
  INFO(next.err << next.out);
  REQUIRE(next.status == 0);
  CHECK(next.json()["jobs"][0]["variant"] == winner->variant());
  CHECK(next.json()["cache"]["builds"] == 0);
}

TEST_CASE(
    "background tuning: an application that ends in the middle of a measurement ends at once, its child with it") {
  const TemporaryFolder folder;
  const Finished finished = embed(folder, "middle");
  INFO(finished.err << finished.out);
  REQUIRE(finished.status == 0);
  const auto told = finished.json();
  CHECK(told["measured"] == true);
  CHECK(told["children"] == 0);
  CHECK(told["end_ms"] < 5000.0);  // a measurement may take 20 s
  // Nothing was chosen of what was measured so far.
  for (const TuningLine& line : tuning_lines(folder / "cache/tuning.tsv")) CHECK(line.verdict() != "winner");
}
