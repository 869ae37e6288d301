// What a person at a terminal sees while it lasts, and that nobody else sees anything of it.
#include "host/kiln_process.hpp"
#include "host/sample_jobs.hpp"

#include "progress.hpp"

#include <catch2/catch.hpp>

#include <csignal>

using namespace kiln::test;
using Catch::Matchers::Contains;
using kiln::WarmingState;
using kiln::host::progress_bar_text;
using kiln::host::rough_time;
using kiln::host::run_progress_text;
using kiln::host::text_bar;
using kiln::host::tuning_progress_text;
using kiln::host::warming_text;

TEST_CASE("warming_text: a bar of twenty places, and how many of how many; nothing where nothing is under way") {
  CHECK(warming_text({.running = true, .done = 0, .of = 8}) == "warming [--------------------] 0 of 8");
  CHECK(warming_text({.running = true, .done = 3, .of = 8}) == "warming [#######-------------] 3 of 8");
  CHECK(warming_text({.running = true, .done = 8, .of = 8}) == "warming [####################] 8 of 8");
  CHECK(warming_text({.running = false, .done = 3, .of = 8}).empty());
  CHECK(warming_text({.running = true}).empty());  // not known yet how many
}

TEST_CASE("tuning_progress_text: a bar, the best so far and the time left") {
  const std::string none = tuning_progress_text("res3", {0, 64, {}, 0, 30'000'000'000});
  CHECK(none == "res3: 0 of 64 [--------------------] none runs yet, 30 s left");
  const std::string some = tuning_progress_text("res3", {16, 64, "v", 1'203'400, 14'400'000'000});
  CHECK(some == "res3: 16 of 64 [#####---------------] best 1.203 ms, 14 s left");
}

TEST_CASE("progress_bar_text: how much of how much, a bar, and the time left where enough is done to tell") {
  CHECK(text_bar(1, 3, 6) == "[##----]");
  CHECK(text_bar(5, 3, 6) == "[######]");
  CHECK(text_bar(0, 0, 3) == "[---]");
  CHECK(progress_bar_text("verified", 25, 100, 10) == "verified 25 of 100 [#####---------------] 30 s left");
  CHECK(progress_bar_text("verified", 25, 100, 0.1) == "verified 25 of 100 [#####---------------]");
  CHECK(progress_bar_text("verified", 0, 100, 10) == "verified 0 of 100 [--------------------]");
  CHECK(progress_bar_text("verified", 7, 7, 10) == "verified 7 of 7 [####################]");
  CHECK(rough_time(89) == "89 s");
  CHECK(rough_time(90) == "2 min");
  CHECK(rough_time(5400) == "1.5 h");
}

TEST_CASE("progress texts: the borders of what is shown") {
  CHECK(rough_time(0) == "0 s");
  CHECK(rough_time(89.4) == "89 s");
  CHECK(rough_time(150) == "2 min");
  CHECK(rough_time(5399) == "90 min");
  CHECK(rough_time(9000) == "2.5 h");
  CHECK(text_bar(3, 3, 2) == "[##]");
  CHECK(text_bar(1, 2, 0) == "[]");
  CHECK(progress_bar_text("v", 1, 2, 0.5) == "v 1 of 2 [##########----------] 0 s left");
  CHECK(progress_bar_text("v", 1, 2, 0.49) == "v 1 of 2 [##########----------]");
  CHECK(progress_bar_text("v", 3, 2, 9) == "v 3 of 2 [####################]");
  kiln::host::RunCourse course = kiln::host::course_of(2, 1);
  course.job = "j";
  course.elapsed_s = 0.5;
  CHECK(run_progress_text(course, 1) == "j [##########----------] 0 s left");
  course.elapsed_s = 0.49;
  CHECK(run_progress_text(course, 1) == "j [##########----------]");
  kiln::RunReport done;
  done.runs = 1;
  count_end(course, done);
  CHECK(course.ended == 1);
  CHECK(course.failed == 0);
  CHECK(course.runs_out == 0);
  done.status = kiln::unavailable("gone");
  done.runs = 0;
  count_end(course, done);
  CHECK(course.ended == 2);
  CHECK(course.failed == 1);
  CHECK(course.runs_out == 1);
}

TEST_CASE("run_progress_text: the job, the share of all runs, the time left; failed runs are behind it too") {
  kiln::host::RunCourse course = kiln::host::course_of(4, 10);
  course.job = "job 2 of 4: layer";
  CHECK(run_progress_text(course, 0) == "job 2 of 4: layer [--------------------]");
  course.elapsed_s = 6;
  CHECK(run_progress_text(course, 10) == "job 2 of 4: layer [#####---------------] 18 s left");
  kiln::RunReport report;
  report.runs = 0;
  report.status = kiln::unavailable("gone");
  count_end(course, report);
  CHECK(course.failed == 1);
  CHECK(run_progress_text(course, 10) == "job 2 of 4: layer [##########----------] 12 s left");
  course.warming = {.running = true, .done = 3, .of = 8};
  CHECK_THAT(run_progress_text(course, 10), Contains("12 s left; warming [#######-------------] 3 of 8"));
  course = kiln::host::course_of(1, 1);
  course.job = "job 1 of 1: only";
  course.elapsed_s = 60;
  CHECK(run_progress_text(course, 0) == "job 1 of 1: only");  // nothing to go by
}

TEST_CASE("the verbs over many programs: on a terminal a bar that is wiped, with plain lines, elsewhere nothing") {
  const TemporaryFolder folder;
  const std::string file = folder.write("jobs.toml", conv_3x3("one") + conv_3x3("two", {.size = 24}));
  const auto kiln = [&](std::vector<std::string> words, StandardOutput errors, std::string how = "auto") {
    words.insert(words.end(), {"--progress", how, "--cache-dir", folder / "cache"});
    const Finished finished = run_kiln(std::move(words), {.errors = errors});
    INFO(finished.out << finished.err);
    CHECK(finished.status == 0);
    return finished.err;
  };
  const std::string bundle = (folder / "bundle.kiln").string(), wiped = "\r\033[K";
  kiln({"run", file, "--device", "opengl:0", "--set", "cache.auto_save=false"}, StandardOutput::pipe);
  const Finished key = run_kiln({"cache", "export", "--show-key", "--json", "--cache-dir", folder / "cache"});
  const std::string trust = key.json().at("public_key");
  const auto check = [&](const std::vector<std::string>& words, const std::string& text) {
    INFO(text);
    const std::string shown = kiln(words, StandardOutput::terminal);
    CHECK_THAT(shown, Contains(wiped + text + " 1 of ") && Contains("[####################]"));
    CHECK(shown.ends_with(wiped));
    CHECK_THAT(kiln(words, StandardOutput::pipe, "plain"), Contains("kiln: " + text + " ") && !Contains("\033"));
    CHECK(kiln(words, StandardOutput::pipe).empty());
  };
  const std::string stored = kiln({"cache", "persist"}, StandardOutput::terminal);
  CHECK_THAT(stored, Contains(wiped + "stored 1 of ") && Contains("[####################]"));
  check({"cache", "verify"}, "verified");
  check({"cache", "export", bundle}, "exported");
  check({"cache", "import", bundle, "--trust", trust}, "imported");
  check({"cache", "prune", "--max-size", "1GiB"}, "looked at");
}

TEST_CASE("kiln cache warm and kiln run: on a terminal a line that is redrawn and wiped, elsewhere nothing") {
  const TemporaryFolder folder;
  const std::string file =
      folder.write("two.toml", conv_3x3("one") + conv_3x3("two", {.channels = 3, .size = 32, .filters = 32}));
  const std::string wiped = "\r\033[K";
  const auto kiln = [&](std::vector<std::string> words, StandardOutput errors) {
    words.insert(words.end(), {file, "--device", "opengl:0", "--cache-dir", folder / "cache"});
    const Finished finished = run_kiln(std::move(words), {.errors = errors});
    INFO(finished.out << finished.err);
    CHECK(finished.status == 0);
    return finished;
  };
  const Finished shown = kiln({"cache", "warm"}, StandardOutput::terminal);
  CHECK_THAT(shown.err, Contains(wiped + "opengl:0: program 1 of ") && Contains(" [####################]"));
  CHECK(shown.err.ends_with(wiped));
  CHECK_THAT(shown.out, Contains(" linked in "));
  CHECK(kiln({"cache", "warm"}, StandardOutput::pipe).err == "");
  const Finished ran = kiln({"run"}, StandardOutput::terminal);
  CHECK_THAT(ran.err, Contains(wiped + "one") || Contains(wiped + "job"));
  CHECK(ran.err.ends_with(wiped));
  CHECK(kiln({"run"}, StandardOutput::pipe).err == "");
}

TEST_CASE("kiln run: redraws the progress line on a terminal and shows the time left") {
  const TemporaryFolder folder;
  const std::string file = folder.write("long.toml", conv_3x3("long", {.channels = 64, .size = 56, .filters = 64}));
  ProcessOptions options;
  options.errors = StandardOutput::terminal;
  options.interrupt_when = " left";
  const Finished finished =
      run_kiln({"run", file, "--device", "cpu", "--repeat", "10000", "--cache-dir", folder / "cache"}, options);
  INFO(finished.err << finished.out);
  CHECK(finished.status == -SIGINT);
  CHECK_THAT(finished.err, Contains("\r\033[Kjob 1 of 1: long [") && Contains("] ") && Contains(" left"));
}
