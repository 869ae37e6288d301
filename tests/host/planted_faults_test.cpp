// `kiln tune` through its real child on variants planted with faults: all are found, none is chosen.
#include "host/kiln_process.hpp"
#include "host/sample_jobs.hpp"
#include "host/tuning_records.hpp"
#include "support/test_length.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace kiln::test;
using Catch::Matchers::Contains;

TEST_CASE("tune: an endless loop, a small wrong result and a crash of the compiler are found and never chosen") {
  const TemporaryFolder folder;
  const auto kiln = [&](std::vector<std::string> words) {
    const std::string layer = folder.write("layer.toml", small_layer), cache = folder / "cache";
    words.insert(words.end(), {layer, "--json", "--device", "opengl:0", "--cache-dir", cache, "--plugin-path",
                               KILN_FIXTURE_DIR, "--set", "plugins.load=[\"cpu\", \"opengl\", \"fixture_faulty\"]",
                               "--set", "generator.name=fixture_faulty"});
    return run_kiln(std::move(words));
  };
  // Time for all of them, however slow the machine.
  const Finished tuned = kiln({"tune", "--budget", "300 s"});
  INFO(tuned.err << tuned.out);
  REQUIRE(tuned.status == 0);
  const auto job = tuned.json()["jobs"][0];
  CHECK(job["candidates"] >= 4);
  std::map<std::string, std::string> rejected;
  for (const std::string text : job["rejected"]) rejected[text.substr(0, text.find(':'))] = text;
  REQUIRE(rejected.size() == 3);
  // A sanitizer ends a process that overflows its stack by a status of its own, once it has described a stack of so
  // many frames: that may take longer than a measurement may.
  const bool described_for_long = is_sanitized && rejected["fault/compiler"].find("timeout") != std::string::npos;
  if (!described_for_long) {
    CHECK_THAT(rejected["fault/compiler"], Contains("the compiler crashed: its process ended"));
  }
  CHECK_THAT(rejected["fault/wrong"], Contains("corrupt: wrong"));
  // A driver that ends loops by itself leaves a wrong sum; one that does not is ended by the watchdog.
  CHECK_THAT(rejected["fault/loop"], Contains("corrupt: wrong") || Contains("timeout"));
  const std::string winner = job["variant"];
  CHECK_THAT(winner, Catch::StartsWith("direct/"));
  std::size_t faults = 0;
  for (const TuningLine& line : tuning_lines(folder / "cache/tuning.tsv")) {
    if (!line.variant().starts_with("fault/")) continue;
    ++faults;
    CHECK(line.verdict() == "rejected");
  }
  CHECK(faults == 3);

  const Finished run = kiln({"run"});
  INFO(run.err << run.out);
  REQUIRE(run.status == 0);
  CHECK(run.json()["jobs"][0]["variant"] == winner);
  CHECK(run.json()["jobs"][0]["verified"] == true);
  CHECK(run.json()["cache"]["builds"] == 0);
}

TEST_CASE("tune: a record of sources that are no more is measured again, however fast it says its variant is") {
  const TemporaryFolder folder;
  const auto tune = [&] {
    return run_kiln({"tune", folder.write("layer.toml", small_layer), "--json", "--device", "opengl:0", "--cache-dir",
                     folder / "cache", "--budget", "2 s"});
  };
  REQUIRE(tune().status == 0);
  // The plain kernel is looked at in each run, however short its time.
  const auto plain_of = [](std::vector<TuningLine>& lines) -> TuningLine& {
    const auto line = std::ranges::find(lines, "direct/plain", &TuningLine::variant);
    REQUIRE(line != lines.end());
    return *line;
  };
  std::vector<TuningLine> lines = tuning_lines(folder / "cache/tuning.tsv");
  TuningLine& loser = plain_of(lines);
  REQUIRE(loser.verdict() == "measured");
  loser.fields[TuningLine::source] = std::string(loser.fields[TuningLine::source].size(), '0');
  loser.fields[TuningLine::wall] = loser.fields[TuningLine::device] = "1,1,1,1,1";
  folder.write("cache/tuning.tsv", tuning_text(lines));

  const auto again = tune();
  INFO(again.err << again.out);
  REQUIRE(again.status == 0);
  const auto job = again.json()["jobs"][0];
  CHECK(job["known"] < lines.size());
  CHECK(job["variant"] != "direct/plain");
  CHECK(job["ms"] > 0.001);
  auto now = tuning_lines(folder / "cache/tuning.tsv");
  CHECK(plain_of(now).fields[TuningLine::wall] != "1,1,1,1,1");
  CHECK(plain_of(now).fields[TuningLine::source].find_first_not_of('0') != std::string::npos);
}
