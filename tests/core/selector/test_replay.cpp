#include "core/selector/candidates.hpp"
#include "core/selector/simulated_world.hpp"

#include "selector/decision_log.hpp"

#include <kiln/selector_admin.hpp>

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <sys/stat.h>

#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

using namespace kiln;
using namespace kiln::test;

namespace {

SelectorContext logging(const std::filesystem::path& folder) {
  SelectorContext context;
  context.cache_directory = folder;
  context.config.log = true;
  return context;
}

const PolicyVerdict& verdict_of(const SelectorReplay& replay, const std::string& policy) {
  for (const PolicyVerdict& verdict : replay.policies) {
    if (verdict.policy == policy) return verdict;
  }
  FAIL("no verdict on " + policy);
  return replay.policies.front();
}

// One decision between "one" (100 ns and a run of 1000) and "two" (a run of 500), and what it took.
std::string decided(const std::string& id, std::size_t chosen, const std::vector<double>& outcomes,
                    const std::string& ground = "policy") {
  std::ostringstream lines;
  lines.precision(17);
  lines << R"({"decision":")" << id << R"(","bucket":"b","ground":")" << ground << R"(","chosen":)" << chosen
        << R"(,"repeat":1,"options":[0,1],"propensities":[0.5,0.5],"candidates":[)"
        << R"({"device":"one","fixed_ns":100,"log_ns":)" << std::log(1000) << R"(,"deviation":0.001,"runs":50},)"
        << R"({"device":"two","fixed_ns":0,"log_ns":)" << std::log(500) << R"(,"deviation":0.001,"runs":50}]})" << '\n';
  for (const double ns : outcomes) {
    lines << R"({"outcome":")" << id << R"(","ns":)" << ns << R"(,"unfit":"fit"})" << '\n';
  }
  return lines.str();
}

}  // namespace

// By hand. Of "one" there are the outcomes 900 and 1100 (of a look); of "two" 600 and 400. Without its own outcome each
// decision expects of one and two: (100 + 1000, 400), (100 + 1100, 500) and (100 + 1000, 600). "first" always takes
// one: 1100, 1200 + 2 (1000 - 1200) and 1100. The others take two: 400 + 2 (600 - 400), 500 and 600 + 2 (400 - 600).
// A resample has the least value three times in 1 of 27, and twice in 6 of 27: the 2.5 % bound is one of these means.
TEST_CASE("selector replay: three decisions judged by hand", "[selector]") {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "selector.log")
      << decided("a", 1, {500, 700}) << decided("b", 0, {900}) << decided("c", 1, {400}) << decided("d", 1, {})
      << decided("e", 0, {1100}, "look") << R"({"outcome":"gone","ns":1,"unfit":"fit"})" << '\n'
      << R"({"outcome":"c","ns":1,"unfit":"contended"})" << '\n';
  const auto replay = replay_selector_log(folder.path(), {});
  REQUIRE(replay);
  CHECK(replay->rejected.empty());
  CHECK(replay->decisions == 5);
  CHECK(replay->judged == 3);
  CHECK(replay->looks == 1);
  CHECK(replay->without_outcome == 1);
  CHECK(replay->recorded_mean_ns == Approx(2000.0 / 3));  // 600, 100 + 900 and 400
  const PolicyVerdict& first = verdict_of(*replay, "first");
  CHECK(first.mean_ns == Approx(1000));
  CHECK(first.low_ns >= 799);
  CHECK(first.low_ns <= 901);
  CHECK(first.high_ns == Approx(1100));
  CHECK(first.agreement == Approx(1.0 / 3));
  const PolicyVerdict& ema = verdict_of(*replay, "ema");
  CHECK(ema.mean_ns == Approx(500));
  CHECK(ema.low_ns >= 199);
  CHECK(ema.low_ns <= 301);
  CHECK(ema.high_ns >= 699);
  CHECK(ema.high_ns <= 801);
  CHECK(ema.agreement == Approx(2.0 / 3));
  CHECK(verdict_of(*replay, "thompson").mean_ns == Approx(500));
  CHECK(replay->policies.back().policy == "first");  // the slowest
  SelectorConfig config;
  config.exploration = 1;
  const auto drawn = replay_selector_log(folder.path(), config);
  REQUIRE(drawn);
  CHECK(verdict_of(*drawn, "epsilon").agreement == Approx(0.5).margin(0.1));  // each of the two as often
  CHECK(verdict_of(*drawn, "ema").agreement == Approx(2.0 / 3));
}

// By hand: with no other outcome of "one" its 1100 ns are believed, and the doubled difference to the 1000 ns it took
// comes off. Of "two" there is none at all.
TEST_CASE("selector replay: one decision is judged by what was believed", "[selector]") {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "selector.log") << decided("a", 0, {900});
  const auto replay = replay_selector_log(folder.path(), {});
  REQUIRE(replay);
  CHECK(verdict_of(*replay, "first").mean_ns == Approx(900));
  CHECK(verdict_of(*replay, "first").low_ns == Approx(900));
  CHECK(verdict_of(*replay, "ema").mean_ns == Approx(500));
}

TEST_CASE("selector replay: where nothing can be judged there is no verdict", "[selector]") {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "selector.log") << decided("a", 1, {}) << decided("b", 1, {500}, "look");
  const auto replay = replay_selector_log(folder.path(), {});
  REQUIRE(replay);
  CHECK(replay->decisions == 2);
  CHECK(replay->judged == 0);
  CHECK(replay->recorded_mean_ns == 0);
  CHECK(replay->policies.empty());
}

// Twenty decisions of 1 or 3 ms, of which the policies take none other: the bounds are about two standard deviations of
// their mean, 0.22 ms, from 2 ms. The least of all resamples is beyond three.
TEST_CASE("selector replay: the bounds of a verdict leave out one resample in forty on either side", "[selector]") {
  const TemporaryFolder folder;
  {
    std::ofstream log(folder.path() / "selector.log");
    for (int i = 0; i < 20; ++i) {
      log << R"({"decision":")" << i << R"(","bucket":")" << i
          << R"(","ground":"policy","chosen":0,"repeat":1,"options":[0],"propensities":[1],"candidates":[)"
          << R"({"device":"one","fixed_ns":0,"log_ns":14,"deviation":0.1,"runs":9}]})" << '\n'
          << R"({"outcome":")" << i << R"(","ns":)" << (i % 2 == 0 ? "1e6" : "3e6") << R"(,"unfit":"fit"})" << '\n';
    }
  }
  const auto replay = replay_selector_log(folder.path(), {});
  REQUIRE(replay);
  const PolicyVerdict& first = verdict_of(*replay, "first");
  CHECK(first.mean_ns == Approx(2e6));
  CHECK(first.agreement == Approx(1));
  CHECK(first.low_ns == Approx(1.57e6).margin(0.12e6));
  CHECK(first.high_ns == Approx(2.43e6).margin(0.12e6));
}

TEST_CASE("selector replay: policies are ranked as the true times rank them", "[selector]") {
  const TemporaryFolder folder;
  const SimulatedWorld world = simulated_world(Times::independent, 3, 16, 5);
  VisitFigures figures;
  {
    const auto selector = selector_of("learning", logging(folder.path()));
    figures = visit(*selector, world, 60, 8, 0.1, 5);
  }
  const auto replay = replay_selector_log(folder.path(), {});
  REQUIRE(replay);
  CHECK(replay->decisions == 16 * 60);
  CHECK(replay->looks > 0);
  CHECK(replay->judged + replay->looks + replay->without_outcome == replay->decisions);
  CHECK(replay->judged > 500);
  CHECK(replay->rejected.empty());
  CHECK(replay->policies.size() == 5);

  const PolicyVerdict &ema = verdict_of(*replay, "ema"), &first = verdict_of(*replay, "first");
  double first_ms = 0, best_ms = 0;
  for (std::size_t s = 0; s < world.specs.size(); ++s) first_ms += world.truth_ms[s][0], best_ms += world.best_ms(s);
  CHECK(ema.mean_ns < first.mean_ns);
  CHECK(ema.low_ns <= ema.mean_ns);
  CHECK(ema.mean_ns <= ema.high_ns);
  // What was recorded is what a policy close to ema did.
  CHECK(ema.mean_ns == Approx(replay->recorded_mean_ns).epsilon(0.05));
  CHECK(ema.agreement > 0.9);
  CHECK(ema.mean_ns == Approx(best_ms / 16 * 1e6).epsilon(0.1));
  // Hopeless options are no options, so the first of a decision need not be the first device: it is no worse than that.
  CHECK(first.mean_ns <= first_ms / 16 * 1e6 * 1.1);
  CHECK(first.mean_ns > 1.1 * ema.mean_ns);
}

TEST_CASE("selector replay: lines that make no sense are left out, each with the reason", "[selector]") {
  const TemporaryFolder folder;
  {
    const auto selector = selector_of("learning", logging(folder.path()));
    (void)visit(*selector, simulated_world(Times::affine, 2, 4, 1), 20, 8, 0.1, 1);
  }
  const auto before = replay_selector_log(folder.path(), {});
  REQUIRE(before);
  std::ofstream(folder.path() / "selector.log", std::ios::app)
      << "{\"decision\":\"x\",\"bucket\n"
      << R"({"decision":"y","bucket":"b","ground":"policy","chosen":3,"candidates":[],"options":[],"propensities":[]})"
      << "\n";
  const auto after = replay_selector_log(folder.path() / "selector.log", {});
  REQUIRE(after);
  CHECK(after->judged == before->judged);
  REQUIRE(after->rejected.size() == 2);
  CHECK(after->rejected[0].validator == "json");
  CHECK(after->rejected[1].validator == "field");
  CHECK_THAT(after->rejected[1].found, Catch::Contains("chosen 3 of 0"));
  {
    std::ofstream log(folder.path() / "selector.log", std::ios::app);
    for (int i = 0; i < 200; ++i) log << "no record\n";
  }
  CHECK(replay_selector_log(folder.path() / "selector.log", {})->rejected.size() == 100);  // told one by one
  const auto none = replay_selector_log(folder.path() / "nothing", {});
  REQUIRE_FALSE(none);
  CHECK(none.error().code == StatusCode::not_found);
}

TEST_CASE("selector replay: the reason for which a record is left out", "[selector]") {
  const auto refused = [](std::string record, const std::string& from = {}, const std::string& to = {}) {
    if (!from.empty()) {
      const std::size_t at = record.find(from);
      REQUIRE(at != std::string::npos);
      record.replace(at, from.size(), to);
    }
    const TemporaryFolder folder;
    std::ofstream(folder.path() / "selector.log") << decided("a", 1, {}) << record << decided("c", 0, {});
    const auto log = selector::read_decisions(folder.path());
    REQUIRE(log);
    CHECK(log->decisions.size() + log->rejected.size() == 3);
    return log->rejected.empty() ? "none" : log->rejected[0].text();
  };
  const std::string good = decided("b", 1, {});
  const std::string fault = "line 2: field: expected a decision or an outcome, found ";
  CHECK(refused(good) == "none");
  CHECK(refused(good, R"("chosen":1)", R"("chosen":2)") == fault + "chosen 2 of 2");
  CHECK(refused(good, "[0.5,0.5]", "[0.5]") == fault + "1 propensities for 2 options");
  CHECK(refused(good, "[0.5,0.5]", "[0.5,-0.1]") == fault + "propensity -0.100000");
  CHECK(refused(good, "[0.5,0.5]", "[0.5,1.01]") == fault + "propensity 1.010000");
  CHECK(refused(good, "[0.5,0.5]", "[0,1]") == "none");
  CHECK(refused(good, "[0.5,0.5]", "[0.5,1.001]") == "none");
  CHECK(refused(good, R"("options":[0,1],"propensities":[0.5,0.5])", R"("options":[0],"propensities":[1])") ==
        fault + "the chosen device is not a candidate");
  CHECK(refused(good, R"("options":[0,1],"propensities":[0.5,0.5])", R"("options":[],"propensities":[])") == "none");
  CHECK_THAT(refused(good, R"("options":[0,1])", R"("options":[0,2])"), Catch::StartsWith(fault));
  CHECK_THAT(refused(good, R"("ground")", R"("grounds")"), Catch::StartsWith(fault));
  CHECK_THAT(refused(good, R"("runs":50)", R"("runs":"x")"), Catch::StartsWith(fault));
  CHECK(refused("[1]\n") == "line 2: json: expected an object, found [1]");
  CHECK(refused(std::string(100, 'x') + "\n") == "line 2: json: expected an object, found " + std::string(60, 'x'));
  const std::string longest = std::string((1 << 20) - good.size() + 1, ' ') + good;  // the line end is no part of it
  CHECK(refused(longest) == "none");
  CHECK(refused(" " + longest) == "line 2: size: expected 1048576 bytes at most, found 1048577");
}

TEST_CASE("selector log: what a decision and its outcome are recorded as", "[selector]") {
  const TemporaryFolder folder;
  const Fleet fleet({device_of("one"), device_of("two")});
  {
    const auto selector = selector_of("learning", logging(folder.path()));
    JobTerms terms;
    terms.repeat = 3;
    selector->record(conv(64, 56), fleet[0], run_of(3), {});  // nothing was decided
    REQUIRE(selector->select(conv(64, 56), Fleet({device_of("one")}).candidates(), terms));
    selector->record(conv(64, 28), fleet[0], run_of(4), {});  // of another shape
    selector->record(conv(64, 56), fleet[1], run_of(5), {});  // of another device
    RunConditions beside, broken;
    beside.contended = true;
    broken.status = internal_error("broken");
    selector->record(conv(64, 56), fleet[0], run_of(6), beside);
    selector->record(conv(64, 56), fleet[0], run_of(7), {});
    REQUIRE(selector->select(conv(64, 56), Fleet({device_of("one")}).candidates(), terms));
    selector->record(conv(64, 56), fleet[0], run_of(8), broken);
    selector->record(conv(64, 56), fleet[0], run_of(9), {});  // the job ended with the run before
  }
  std::ifstream log(folder.path() / "selector.log");
  std::vector<std::string> lines;
  for (std::string line; std::getline(log, line);) lines.push_back(line);
  REQUIRE(lines.size() == 5);
  CHECK_THAT(lines[0], Catch::Contains(R"("bucket":"conv2d 3x3 dense direct f32 @28.0/21")") &&
                           Catch::Contains(R"("ground":"only one")") && Catch::Contains(R"("chosen":0)") &&
                           Catch::Contains(R"("repeat":3)") && Catch::Contains(R"("options":[])") &&
                           Catch::Contains(R"("propensities":[])") && Catch::Contains(R"("device":"one")") &&
                           Catch::Contains(R"("runs":1)") && Catch::Contains(R"("fixed_ns":0.0)"));
  CHECK_THAT(lines[1], Catch::Contains(R"("ns":6000000.0)") && Catch::Contains(R"("unfit":"contended")"));
  CHECK_THAT(lines[2], Catch::Contains(R"("ns":7000000.0)") && Catch::Contains(R"("unfit":"fit")"));
  CHECK_THAT(lines[4], Catch::Contains(R"("ns":8000000.0)") && Catch::Contains(R"("unfit":"faulted")"));
  const auto read = selector::read_decisions(folder.path());
  REQUIRE(read);
  REQUIRE(read->decisions.size() == 2);
  CHECK(read->decisions[0].fit_ns == std::vector<double>{7e6});
  CHECK(read->decisions[1].fit_ns.empty());
}

TEST_CASE("selector log: a file that cannot be read is an error, and that there is none another one", "[selector]") {
  const TemporaryFolder folder;
  const auto none = selector::read_decisions(folder.path());
  REQUIRE_FALSE(none);
  CHECK(none.error().text() ==
        "not_found: " + folder.path().string() + ": no decision log exists. Set [selector] log = true to record one");
  std::ofstream(folder.path() / "selector.log.1") << decided("a", 1, {});
  const auto older = selector::read_decisions(folder.path());  // the older one is enough
  REQUIRE(older);
  CHECK(older->decisions.size() == 1);
  std::filesystem::create_directory(folder.path() / "selector.log");
  const auto unreadable = selector::read_decisions(folder.path());
  REQUIRE_FALSE(unreadable);
  CHECK(unreadable.error().code != StatusCode::not_found);
}

TEST_CASE("selector log: a run is the outcome of its own job's decision", "[selector]") {
  const TemporaryFolder folder;
  const Fleet fleet({device_of("one")});
  const auto all = fleet.candidates();
  const KernelSpec spec = conv(64, 56);
  {
    const auto selector = selector_of("learning", logging(folder.path()));
    bool chosen = true;  // only the main thread may CHECK
    const auto run = [&](std::uint32_t runs, double ms) {
      JobTerms terms;
      terms.repeat = 2;
      chosen = selector->select(spec, all, terms) && chosen;
      for (std::uint32_t i = 0; i < runs; ++i) selector->record(spec, fleet[0], run_of(ms), {});
    };
    run(1, 3);  // it is stopped before its second run
    run(2, 5);
    CHECK(selector->select(spec, all, {}));
    std::thread([&] { run(2, 7); }).join();  // beside the job of this thread
    selector->record(spec, fleet[0], run_of(9), {});
    selector->record(spec, fleet[0], run_of(11), {});  // of a job whose device was named
    CHECK(chosen);
  }
  const auto log = selector::read_decisions(folder.path());
  REQUIRE(log);
  REQUIRE(log->decisions.size() == 4);
  CHECK(log->decisions[0].fit_ns == std::vector<double>{3e6});
  CHECK(log->decisions[1].fit_ns == std::vector<double>{5e6, 5e6});
  CHECK(log->decisions[2].fit_ns == std::vector<double>{9e6});
  CHECK(log->decisions[3].fit_ns == std::vector<double>{7e6, 7e6});
}

TEST_CASE("selector log: propensities are those of the draw, before it is charged to the budget", "[selector]") {
  const TemporaryFolder folder;
  const Fleet fleet({device_of("one"), device_of("two")});
  const auto all = fleet.candidates();
  const KernelSpec spec = conv(64, 56);
  SelectorContext context = logging(folder.path());
  context.config.policy = "epsilon";
  context.config.exploration = 1;  // each of the two with the same probability, within 21 ms of work
  {
    const auto selector = selector_of("learning", context);
    for (int i = 0; i < 3; ++i) {
      selector->record(spec, fleet[0], run_of(3), {});
      selector->record(spec, fleet[1], run_of(4), {});
    }
    JobTerms terms;
    terms.repeat = 4;  // of the slower one 16 ms
    std::size_t chosen = 0;
    for (int i = 0; i < 100 && chosen == 0; ++i) chosen = selector->select(spec, all, terms)->candidate;
    CHECK(chosen == 1);
  }
  const auto log = selector::read_decisions(folder.path());
  REQUIRE(log);
  const selector::RecordedDecision& last = log->decisions.back();
  CHECK(last.ground == "policy");
  CHECK(last.chosen_device == "two");
  CHECK(last.options.at(last.chosen).propensity > 0.2);
}

TEST_CASE("selector log: bounded, the oldest decisions go first", "[selector]") {
  const TemporaryFolder folder;
  SelectorContext context = logging(folder.path());
  context.config.max_log = 64 << 10;
  {
    const auto selector = selector_of("learning", context);
    (void)visit(*selector, simulated_world(Times::affine, 3, 8, 1), 100, 8, 0.1, 1);
  }
  const auto now = std::filesystem::file_size(folder.path() / "selector.log");
  const auto older = std::filesystem::file_size(folder.path() / "selector.log.1");
  CHECK(now + older <= (64 << 10) + 2048);
  CHECK(older >= 32 << 10);
  const auto replay = replay_selector_log(folder.path(), {});
  REQUIRE(replay);
  CHECK(replay->rejected.empty());
  CHECK(replay->decisions > 20);
  CHECK(replay->decisions < 800);
}

TEST_CASE("selector log: two processes that write at one time keep each other's lines, and no child has the file",
          "[selector]") {
  const TemporaryFolder folder;
  const Fleet fleet({device_of("one"), device_of("two")});
  const auto all = fleet.candidates();
  const auto first = selector_of("learning", logging(folder.path()));
  const auto second = selector_of("learning", logging(folder.path()));
  for (int i = 0; i < 3; ++i) {
    REQUIRE(first->select(conv(64, 56), all, {}));
    REQUIRE(second->select(conv(64, 28), all, {}));
  }
  const auto replay = replay_selector_log(folder.path(), {});
  REQUIRE(replay);
  CHECK(replay->rejected.empty());
  std::ifstream log(folder.path() / "selector.log");
  std::size_t lines = 0;
  for (std::string line; std::getline(log, line);) ++lines;
  CHECK(lines == 6);
  int open_files = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (std::filesystem::read_symlink(entry, gone) != folder.path() / "selector.log") continue;
    const int fd = std::stoi(entry.path().filename());
    if ((::fcntl(fd, F_GETFL) & O_ACCMODE) != O_WRONLY) continue;
    ++open_files;
    CHECK((::fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
  }
  CHECK(open_files == 2);
}

TEST_CASE("selector log: its folder is made for its owner alone", "[selector]") {
  const TemporaryFolder folder;
  const auto cache = folder.path() / "deep" / "cache";
  const auto selector = selector_of("learning", logging(cache));
  const Fleet fleet({device_of("one"), device_of("two")});
  const auto all = fleet.candidates();
  REQUIRE(selector->select(conv(64, 56), all, {}));
  struct stat found {};
  REQUIRE(::stat((cache / "selector.log").c_str(), &found) == 0);
  CHECK((found.st_mode & 0777) == 0600);
  REQUIRE(::stat(cache.c_str(), &found) == 0);
  CHECK((found.st_mode & 0777) == 0700);
}

TEST_CASE("selector log: a file that is a link, a pipe or has a second name is not written", "[selector]") {
  const TemporaryFolder folder;
  const auto file = folder.path() / "selector.log", other = folder.path() / "other";
  std::ofstream(other) << "mine\n";
  std::string why;
  SECTION("a link") {
    std::filesystem::create_symlink(other, file);
    why = "cannot be opened";
  }
  SECTION("a second name") {
    std::filesystem::create_hard_link(other, file);
    why = "has 2 hard links, expected 1";
  }
  SECTION("a folder") {
    std::filesystem::create_directory(file);
    why = "cannot be opened";
  }
  SECTION("a pipe") {
    REQUIRE(::mkfifo(file.c_str(), 0600) == 0);
    why = "cannot be opened";  // nobody reads it
  }
  Lines lines;
  SelectorContext context = logging(folder.path());
  context.log = {&lines, LogLevel::info};
  const auto selector = selector_of("learning", context);
  const Fleet fleet({device_of("one"), device_of("two")});
  const auto all = fleet.candidates();
  for (int i = 0; i < 2; ++i) REQUIRE(selector->select(conv(64, 56), all, {}));
  CHECK(std::filesystem::file_size(other) == 5);
  REQUIRE(lines.all.size() == 1);
  CHECK_THAT(lines.all[0], Catch::Contains("decisions are no longer recorded") && Catch::Contains(why));
}

TEST_CASE("selector log: nothing is recorded unless it is asked for", "[selector]") {
  const TemporaryFolder folder;
  SelectorContext context = logging(folder.path());
  context.config.log = false;
  {
    const auto selector = selector_of("learning", context);
    (void)visit(*selector, simulated_world(Times::affine, 2, 4, 1), 5, 2, 0.1, 1);
  }
  CHECK_FALSE(std::filesystem::exists(folder.path() / "selector.log"));
}
