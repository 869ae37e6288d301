// `kiln bench` with programs that are made up: what they write arrives, and what they do wrong is said.
#include "host/kiln_process.hpp"

#include "figures.hpp"
#include "verbs/bench_compare.hpp"
#include "verbs/bench_programs.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <csignal>
#include <fstream>
#include <thread>

using namespace kiln::test;
using Catch::Matchers::Contains;
using kiln::Deadline;
using kiln::StatusCode;
using kiln::host::BenchFigure;
using kiln::host::BenchTarget;
using kiln::host::merge_passes;
using kiln::host::run_program;

namespace {

const std::string good_figure =
    R"({"id": "selector.a", "name": "a figure", "unit": "ms", "better": "less",
  "kiln": {"median": 2, "low": 1.5, "high": 2.5, "samples": 5},
  "peer": {"name": "a peer", "median": 6, "low": 5, "high": 7, "samples": 5},
  "ratio": {"median": 3, "low": 2, "high": 4}, "target": {"text": ">= 2x", "value": 2, "met": true},
  "verified": true, "stable": false, "group": "a group", "device": "cpu"})";

const std::string good_count =
    R"({"id": "selector.count", "name": "a count", "unit": "calls", "better": "less",
  "kiln": {"median": 3, "low": 3, "high": 3, "samples": 1}, "peer": null, "ratio": null, "target": null,
  "verified": null, "stable": true, "group": null, "device": null})";

std::string figures_of(const std::string& list) {
  return R"({"schema": 1, "kind": "figures", "versions": {"peer": "1.2"}, "skipped": null, "figures": [)" + list + "]}";
}

// A folder with a program that writes `figures`, and then does what the words say.
class FakePrograms {
 public:
  explicit FakePrograms(const std::string& figures, const std::string& then = "exit 0",
                        const std::string& name = "selector") {
    add(name, figures, then);
    std::filesystem::create_directory(folder_ / "cache");
  }
  void add(const std::string& name, const std::string& figures, const std::string& then = "exit 0") const {
    const auto file = folder_.write("figures_" + name, figures);
    const auto program = folder_.write(
        name, "#!/bin/sh\ncp '" + file.string() + "' \"$2\"\necho the last words\n" + then + "\n");
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  }
  Finished bench(std::vector<std::string> words, const std::string& interrupt_when = "") const {
    words.insert(words.begin(), "bench");
    words.insert(words.end(), {"--cache-dir", folder_ / "cache"});
    ProcessOptions options;
    options.environment["KILN_BENCH_PATH"] = folder_.path();
    options.environment["TMPDIR"] = folder_.path();
    options.interrupt_when = interrupt_when;
    return run_kiln(words, options);
  }
  const TemporaryFolder& folder() const { return folder_; }

 private:
  TemporaryFolder folder_;
};

// What a command of the shell prints, as `kiln bench` names it: "not known" where there is nothing.
std::string said_by(const std::string& command) {
  std::string said = run_process({"sh", "-c", command}).out;
  while (!said.empty() && said.back() == '\n') said.pop_back();
  return said.empty() ? "not known" : said;
}

}  // namespace

TEST_CASE("kiln bench: what a program writes is in the file and in the table") {
  const FakePrograms programs(figures_of(good_figure + "," + good_count));
  const auto file = programs.folder() / "bench.json";
  const Finished done = programs.bench({"selector", "--output", file, "--passes", "1"});
  INFO(done.out << done.err);
  REQUIRE(done.status == 0);
  CHECK_THAT(done.out, Contains("a figure, a group [cpu]") && Contains("2 ms (1.5 to 2.5)") &&
                           Contains("a peer: 6 ms (5 to 7)") && Contains("3x (2 to 4)") && Contains(">= 2x: met") &&
                           Contains("verified"));
  std::ifstream stream(file);
  const auto json = nlohmann::json::parse(stream);
  CHECK(json["schema"] == 1);
  CHECK(json["kind"] == "bench");
  CHECK(json["machine"]["cores"] >= 1);
  CHECK((json["commit"].is_null() ||
         json["commit"].get<std::string>().size() >= 40));  // null: sources that are no checkout
  CHECK(json["machine"]["memory_bytes"] > 1'000'000);
  CHECK(json["machine"]["cpu"] == said_by("sed -n 's/^model name[^:]*:[[:space:]]*//p' /proc/cpuinfo | head -n 1"));
  CHECK(json["machine"]["os"] == said_by(". /etc/os-release && echo \"$PRETTY_NAME\""));
  CHECK(json["machine"]["kernel"] == said_by("uname -r"));
  CHECK(json["machine"]["noise_percent"] >= 0);
  CHECK(json["machine"]["versions"]["peer"] == "1.2");
  REQUIRE(json["areas"].size() == 1);
  CHECK(json["areas"][0]["name"] == "selector");
  CHECK(json["areas"][0]["skipped"].is_null());
  REQUIRE(json["areas"][0]["figures"].size() == 2);
  CHECK(json["areas"][0]["figures"][0] == nlohmann::json::parse(good_figure));
  CHECK(json["areas"][0]["figures"][1] == nlohmann::json::parse(good_count));
}

TEST_CASE("kiln bench: everything is run through twice, and spreads hold both passes") {
  const FakePrograms programs(figures_of(good_figure + "," + good_count));
  const Finished done = programs.bench({"selector", "--json"});
  INFO(done.out << done.err);
  REQUIRE(done.status == 0);
  const auto figures = done.json()["areas"][0]["figures"];
  REQUIRE(figures.size() == 2);
  auto twice = nlohmann::json::parse(good_figure);
  CHECK(figures[0]["kiln"]["samples"] == 2 * twice["kiln"]["samples"].get<int>());
  CHECK(figures[0]["kiln"]["median"] == Approx(twice["kiln"]["median"].get<double>()));
  const Finished wrong = programs.bench({"selector", "--passes", "10"});
  CHECK(wrong.status == 2);
  CHECK_THAT(wrong.err, Contains("--passes 10: expected 1 to 9"));
}

TEST_CASE("kiln bench: a run that failed has no part in a figure's median") {
  std::string slower = good_figure;
  slower.replace(slower.find("\"median\": 2,"), 12, "\"median\": 2.2,");
  const FakePrograms programs(figures_of(good_figure));
  const auto& folder = programs.folder();
  const auto second = folder.write("second", figures_of(slower));
  // The first run fails, the second measures 2 ms, the third 2.2 ms.
  programs.add("selector", figures_of(good_figure),
               "echo x >> '" + (folder / "runs").string() + "'; case $(wc -l < '" + (folder / "runs").string() +
                   "') in 1) exit 3 ;; 3) cp '" + second.string() + "' \"$2\" ;; esac");
  const Finished done = programs.bench({"selector", "--json", "--passes", "3"});
  INFO(done.err);
  CHECK(done.status == 1);
  const auto kiln = done.json()["areas"][0]["figures"][0]["kiln"];
  CHECK(kiln["samples"] == 10);
  CHECK(kiln["median"] == Approx(std::sqrt(2 * 2.2)));
}

TEST_CASE("kiln bench: convolutions have two turns in each pass, and one where the run is a brief one") {
  const FakePrograms programs(figures_of(good_figure), "exit 0", "conv_tables");
  programs.add("networks", figures_of(good_count));
  const auto samples = [&](const std::vector<std::string>& words) {
    const Finished done = programs.bench(words);
    INFO(done.out << done.err);
    REQUIRE(done.status == 0);
    return done.json()["areas"][0]["figures"][0]["kiln"]["samples"].get<int>();
  };
  CHECK(samples({"conv", "--json", "--passes", "1"}) == 2 * 5);
  CHECK(samples({"conv", "--json"}) == 4 * 5);
  CHECK(samples({"conv", "--json", "--quick"}) == 5);
}

TEST_CASE("merge_passes: the middle of the medians, a spread as wide as both, the target judged anew") {
  BenchFigure figure;
  figure.kiln = {2, 1.5, 2.5, 5};
  figure.peer_name = "a peer";
  figure.peer = {6, 5, 7, 5};
  figure.ratio = {3, 2, 4, 0};
  figure.target = BenchTarget{">= 4x", 4, false};
  figure.verified = true;
  BenchFigure again = figure;
  again.kiln = {8, 7, 9, 5};
  again.ratio = {12, 11, 13, 0};
  merge_passes(figure, again);
  CHECK(figure.kiln.median == Approx(4));  // the geometric middle of 2 and 8
  CHECK(figure.kiln.low == 1.5);
  CHECK(figure.kiln.high == 9);
  CHECK(figure.kiln.samples == 10);
  CHECK(figure.ratio.median == Approx(6));
  CHECK(figure.target->met);
  again.verified = false;
  again.kiln.median = 4, again.ratio.median = 0.05, again.ratio.low = 0.01;
  merge_passes(figure, again);
  CHECK(figure.kiln.median == Approx(4));
  CHECK(figure.ratio.median == Approx(std::cbrt(12 * 3 * 0.05)));
  CHECK_FALSE(figure.target->met);
  CHECK(figure.verified == false);
  again.peer_name.reset();
  again.peer = again.ratio = {};
  merge_passes(figure, again);
  CHECK(figure.peer.median == Approx(6));
  CHECK(figure.peer.samples == 15);
  CHECK(figure.ratio.median == Approx(std::cbrt(12 * 3 * 0.05)));
}

TEST_CASE("quantile: the median of an even number of samples is between the two in the middle") {
  using kiln::bench::quantile;
  CHECK(quantile({8, 1, 2, 100}, 0.5) == Approx(4));
  CHECK(quantile({1 / 8.0, 1, 1 / 2.0, 1 / 100.0}, 0.5) == Approx(1 / 4.0));  // of the inverses its inverse
  CHECK(quantile({3, 1, 2}, 0.5) == 2);
  CHECK(quantile({7, 7}, 0.5) == 7);
  CHECK(quantile({0, 3}, 0.5) == 1.5);
  CHECK(quantile({1, 2, 4, 8, 16}, 0.25) == 2);
  CHECK(quantile({5, 1}, 0) == 1);
  CHECK(quantile({5, 1}, 1) == 5);
}

TEST_CASE("kiln bench: every way in which a program fails is told, with what it said last") {
  const struct {
    std::string figures, then;
    std::vector<std::string> says;
  } cases[] = {
      {figures_of(good_figure), "kill -SEGV $$", {"selector", "SIGSEGV", "the last words"}},
      {figures_of(good_figure), "exit 3", {"selector", "status 3", "the last words"}},
      {"{", "exit 0", {"selector", "not a JSON document"}},
      {R"({"schema": 2, "kind": "figures"})", "exit 0", {"schema: expected 1, found 2"}},
      {R"({"schema": 1, "kind": "bench"})", "exit 0", {"kind: expected \"figures\", found \"bench\""}},
      {figures_of(R"({"id": "x"})"), "exit 0", {"figures[0].name: is missing"}},
      {figures_of(good_figure + "," + good_figure), "exit 0", {"selector.a@a group on cpu", "twice"}},
  };
  for (const auto& each : cases) {
    const FakePrograms programs(each.figures, each.then);
    const Finished done = programs.bench({"selector", "--json"});
    INFO(done.out << done.err);
    CHECK(done.status == 1);
    for (const std::string& text : each.says) CHECK_THAT(done.err, Contains(text));
    const auto area = done.json()["areas"][0];
    CHECK(area["figures"].empty());
    CHECK_THAT(area["skipped"].get<std::string>(), Contains(each.says.front()));
  }
}

TEST_CASE("kiln bench: of what a failing program said, the last 400 bytes are told") {
  const auto told_of = [](std::size_t letters) {
    const FakePrograms programs("{", "printf 'A" + std::string(letters, 'b') + "'; exit 3");
    return programs.bench({"selector", "--json"}).json()["areas"][0]["skipped"].get<std::string>();
  };
  // Before it, "the last words" and an end of line.
  CHECK_THAT(told_of(384), Contains("the last words A" + std::string(384, 'b')) && !Contains("…"));
  CHECK_THAT(told_of(385), Contains("…he last words A" + std::string(385, 'b')));
  CHECK_THAT(told_of(500), Contains("…" + std::string(400, 'b')) && !Contains("Abbb"));
}

TEST_CASE("kiln bench: a number that is none is told with its place") {
  std::string wrong = good_count;
  wrong.replace(wrong.find("\"median\": 3"), 11, "\"median\": \"3\"");
  const Finished done = FakePrograms(figures_of(wrong)).bench({"selector"});
  CHECK(done.status == 1);
  CHECK_THAT(done.err, Contains("figures[0].kiln.median: expected a number, found \"3\""));
}

TEST_CASE("kiln bench: an output that was wrong is a failure, a peer that is not there is none") {
  std::string wrong = good_figure;
  wrong.replace(wrong.find("\"verified\": true"), 16, "\"verified\": false");
  const Finished done = FakePrograms(figures_of(wrong)).bench({"selector"});
  CHECK(done.status == 1);
  CHECK_THAT(done.err, Contains("selector.a@a group on cpu") && Contains("an output was wrong"));
  CHECK_THAT(done.out, Contains("WRONG"));

  std::string skipped = figures_of("");
  skipped.replace(skipped.find("\"skipped\": null"), 15, "\"skipped\": \"no such card\"");
  const Finished absent = FakePrograms(skipped).bench({"selector", "--json"});
  CHECK(absent.status == 0);
  CHECK(absent.json()["areas"][0]["skipped"] == "selector: no such card");
}

TEST_CASE("kiln bench: an --output that cannot be written is refused at once, or costs no figure") {
  const TemporaryFolder folder;
  const auto file = folder / "bench.json";
  const FakePrograms programs(figures_of(good_figure), "mkdir '" + file.string() + "'");
  const Finished late = programs.bench({"selector", "--passes", "1", "--output", file});
  INFO(late.err);
  CHECK(late.status == 1);
  CHECK_THAT(late.err, Contains("bench.json: is a folder, expected a file"));
  CHECK(late.json()["areas"][0]["figures"].size() == 1);
  const Finished refused = programs.bench({"selector", "--output", file, "--progress", "plain"});
  CHECK(refused.status == 2);
  CHECK_THAT(refused.err, Contains("is a folder") && !Contains("bench 1 of"));
  CHECK(refused.out == "");
}

TEST_CASE("kiln bench: an area, a program or a cache folder that is not there") {
  const FakePrograms programs(figures_of(good_figure));
  const Finished area = programs.bench({"selektor"});
  CHECK(area.status == 2);
  CHECK_THAT(area.err, Contains("'selektor'") && Contains("cache, start, conv, executor, selector, tuner, pm4"));
  const Finished program = programs.bench({"tuner"});
  CHECK(program.status == 1);
  CHECK_THAT(program.err, Contains("tuner: not found in " + programs.folder().path().string()));
  const Finished cache = run_kiln({"bench", "selector", "--cache-dir", programs.folder() / "absent"});
  CHECK(cache.status == 2);
  CHECK_THAT(cache.err, Contains("--cache-dir " + (programs.folder() / "absent").string() + ": not a folder"));
}

TEST_CASE("kiln bench --stable: only counts") {
  const TemporaryFolder folder;
  folder.write("figures", figures_of(good_figure + "," + good_count));
  const auto program = folder.write("cache_counts", "#!/bin/sh\ncp '" + (folder / "figures").string() + "' \"$2\"\n");
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  ProcessOptions options;
  options.environment["KILN_BENCH_PATH"] = folder.path();
  const Finished done = run_kiln({"bench", "cache", "--stable", "--json", "--cache-dir", folder.path()}, options);
  INFO(done.err);
  REQUIRE(done.status == 0);
  const auto figures = done.json()["areas"][0]["figures"];
  REQUIRE(figures.size() == 1);
  CHECK(figures[0]["id"] == "selector.count");
}

TEST_CASE("kiln bench: Ctrl-C ends the program too, and nothing is left") {
  const FakePrograms programs(figures_of(good_figure), "mkdir \"$TMPDIR/kiln-bench-left\"; sleep 300");
  const auto file = programs.folder() / "bench.json";
  const Finished done =
      programs.bench({"selector", "--passes", "1", "--progress", "plain", "--output", file}, "bench 1 of 1");
  CHECK(done.status == -SIGINT);
  CHECK_FALSE(std::filesystem::exists(file));
  for (const auto& entry : std::filesystem::directory_iterator(programs.folder().path())) {
    CHECK_FALSE(entry.path().filename().string().starts_with("kiln-bench-"));
  }
}

TEST_CASE("run_program: what does not end is ended at its deadline, and what it started with it") {
  const TemporaryFolder folder;
  const std::atomic<bool> stop{false};
  const auto script = folder.write("hangs", "#!/bin/sh\necho before it hung\nsleep 300 & echo $! > \"$1\"\nwait\n");
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  const auto pid_file = folder / "pid";
  const kiln::Status hung =
      run_program({script, pid_file}, folder / "log", Deadline::after(std::chrono::seconds(5)), stop, [] {});
  CHECK(hung.code == StatusCode::timeout);
  CHECK_THAT(hung.message, Contains("timed out") && Contains("before it hung"));
  std::ifstream stream(pid_file);
  pid_t sleeper = 0;
  REQUIRE(stream >> sleeper);
  bool gone = false;  // killed with its group; its new parent may take a moment to collect it
  for (int look = 0; look < 3000 && !gone; ++look) {
    std::ifstream state("/proc/" + std::to_string(sleeper) + "/stat");
    std::string number, name, letter;
    gone = !(state >> number >> name >> letter) || letter == "Z";
    if (!gone) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  CHECK(gone);
  const kiln::Status absent =
      run_program({folder / "absent"}, folder / "log", Deadline::after(std::chrono::seconds(2)), stop, [] {});
  CHECK(absent.code == StatusCode::unavailable);
  CHECK_THAT(absent.message, Contains("cannot be started"));
}
