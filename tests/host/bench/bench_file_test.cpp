// The files of `kiln bench` in one process: every member is read and written, what is wrong is told at its place, and
// the table and its Markdown are these texts.
#include "host/kiln_process.hpp"

#include "verbs/bench_compare.hpp"
#include "verbs/bench_file.hpp"

#include <catch2/catch.hpp>

#include <array>

using namespace kiln::host;
using namespace kiln::test;
using Catch::Matchers::Contains;
using kiln::Json;
using kiln::StatusCode;

namespace {

const std::string whole_figure = R"({"id": "cache.hit", "name": "a hit", "unit": "ns", "better": "more",
  "kiln": {"median": 2.5, "low": 2, "high": 3, "samples": 5},
  "peer": {"name": "a peer", "median": 10, "low": 9, "high": 11, "samples": 7},
  "ratio": {"median": 4, "low": 3.5, "high": 4.5}, "target": {"text": ">= 3x", "value": 3, "met": true},
  "verified": true, "stable": false, "group": "2 threads", "device": "cpu"})";

const std::string bare_figure = R"({"id": "calls", "name": "calls|all", "unit": "", "better": "less",
  "kiln": {"median": 3, "low": 3, "high": 3, "samples": 1}, "peer": null, "ratio": null,
  "target": {"text": "<= 2", "value": 2, "met": false}, "verified": false, "stable": true, "group": null, "device": null})";

const std::string whole_bench =
    R"({"schema": 1, "kind": "bench", "kiln": "0.1.0", "commit": "abc", "started": "2026-11-23T12:00:00Z",
  "seconds": 61.5, "machine": {"cpu": "A processor", "cores": 2, "memory_bytes": 1073741824, "kernel": "6.1", "os": "Linux",
  "quiet": true, "load_before": 0.25, "noise_percent": 1.5, "versions": {"compiler": "14", "peer": "1.2"}},
  "areas": [{"name": "cache", "title": "Program cache", "seconds": 60, "skipped": null, "figures": [)" +
    whole_figure + "," + bare_figure + R"(]},
            {"name": "gpu", "title": "GPU", "seconds": 1.5, "skipped": "no card", "figures": []}]})";

Json document_of(const std::string& text) {
  Json document = kiln::parse_json(text);
  REQUIRE_FALSE(document.is_discarded());
  return document;
}

BenchFile whole_file() {
  auto file = read_bench(document_of(whole_bench));
  REQUIRE(file);
  return *file;
}

BenchFigure figure_of(const Spread& spread) {
  BenchFigure figure;
  figure.id = figure.name = "t";
  figure.unit = "ns";
  figure.kiln = spread;
  return figure;
}

BenchFile file_of(const BenchFigure& figure) {
  BenchFile file;
  file.areas.push_back({"a", "A", 1, std::nullopt, {figure}});
  return file;
}

}  // namespace

TEST_CASE("bench file: every member is read, and written again") {
  const BenchFile file = whole_file();
  CHECK(file.kiln == "0.1.0");
  CHECK(file.commit == "abc");
  CHECK(file.started == "2026-11-23T12:00:00Z");
  CHECK(file.seconds == 61.5);
  CHECK(file.machine.cpu == "A processor");
  CHECK(file.machine.cores == 2);
  CHECK(file.machine.memory_bytes == 1u << 30);
  CHECK(file.machine.kernel == "6.1");
  CHECK(file.machine.os == "Linux");
  CHECK(file.machine.quiet);
  CHECK(file.machine.load_before == 0.25);
  CHECK(file.machine.noise_percent == 1.5);
  CHECK(file.machine.versions == std::map<std::string, std::string>{{"compiler", "14"}, {"peer", "1.2"}});
  REQUIRE(file.areas.size() == 2);
  CHECK(file.areas[1].skipped == "no card");
  CHECK(file.areas[1].figures.empty());
  REQUIRE(file.areas[0].figures.size() == 2);
  const BenchFigure& figure = file.areas[0].figures[0];
  CHECK(figure.more_is_better);
  CHECK(figure.kiln.samples == 5);
  CHECK(figure.peer_name == "a peer");
  CHECK(figure.peer.samples == 7);
  CHECK(figure.ratio.high == 4.5);
  REQUIRE(figure.target);
  CHECK(figure.target->met);
  CHECK(figure.verified == true);
  CHECK_FALSE(figure.stable);
  CHECK(figure.identity() == "cache.hit@2 threads on cpu");
  const BenchFigure& bare = file.areas[0].figures[1];
  CHECK_FALSE(bare.more_is_better);
  CHECK_FALSE(bare.peer_name);
  CHECK(bare.stable);
  CHECK(bare.verified == false);
  CHECK(bare.identity() == "calls");
  CHECK(document_of(bench_file_text(file)) == document_of(whole_bench));
  BenchFile unknown = file;
  unknown.commit.reset();
  unknown.areas.clear();
  CHECK(document_of(bench_file_text(unknown))["commit"].is_null());
  CHECK(document_of(bench_file_text(unknown))["areas"] == Json::array());
}

TEST_CASE("bench file: what is wrong is told with its place and what was expected") {
  const struct {
    const char* pointer;
    const char* value;
    const char* message;
  } wrong[] = {
      {"/schema", "2", "schema: expected 1, found 2"},
      {"/schema", "-1", "schema: expected an integer of at least 0, found -1"},
      {"/kind", "\"run\"", "kind: expected \"bench\", found \"run\""},
      {"/kiln", "3", "kiln: expected a string, found 3"},
      {"/commit", "{}", "commit: expected a string, found {}"},
      {"/seconds", "\"1\"", "seconds: expected a number, found \"1\""},
      {"/seconds", "null", "seconds: expected a number, found null"},
      {"/machine", "[]", "machine: expected an object, found []"},
      {"/machine/cores", "1.5", "machine.cores: expected an integer of at least 0, found 1.5"},
      {"/machine/quiet", "0", "machine.quiet: expected true or false, found 0"},
      {"/machine/versions", "[]", "machine.versions: expected an object, found []"},
      {"/machine/versions/peer", "1", "machine.versions.peer: expected a string, found 1"},
      {"/areas", "{}", "areas: expected an array, found {}"},
      {"/areas/0", "7", "areas[0]: expected an object, found 7"},
      {"/areas/1/skipped", "true", "areas[1].skipped: expected a string, found true"},
      {"/areas/0/figures/1/better", "\"bigger\"",
       "areas[0].figures[1].better: expected \"less\" or \"more\", found \"bigger\""},
      {"/areas/0/figures/0/kiln/samples", "0",
       "areas[0].figures[0].kiln: expected at least 1 sample, found {\"median\":2.5,\"low\":2,\"high\":3,\"sampl..."},
      {"/areas/0/figures/0/ratio/low", "4.25",
       "areas[0].figures[0].ratio: expected low <= median <= high, found {\"median\":4,\"low\":4.25,\"high\":4.5}"},
      {"/areas/0/figures/0/ratio/high", "3.75",
       "areas[0].figures[0].ratio: expected low <= median <= high, found {\"median\":4,\"low\":3.5,\"high\":3.75}"},
      {"/areas/0/figures/0/target/met", "\"yes\"",
       "areas[0].figures[0].target.met: expected true or false, found \"yes\""},
      {"/areas/0/figures/0/verified", "1", "areas[0].figures[0].verified: expected true or false, found 1"},
      {"/areas/0/figures/0/device", "1", "areas[0].figures[0].device: expected a string, found 1"},
  };
  for (const auto& one : wrong) {
    INFO(one.pointer);
    Json document = document_of(whole_bench);
    document[Json::json_pointer(one.pointer)] = document_of(one.value);
    const auto read = read_bench(document);
    REQUIRE_FALSE(read);
    CHECK(read.error().message == one.message);
  }
  for (const char* const pointer : {"/schema",
                                    "/kind",
                                    "/kiln",
                                    "/commit",
                                    "/started",
                                    "/seconds",
                                    "/machine",
                                    "/machine/cpu",
                                    "/machine/kernel",
                                    "/machine/os",
                                    "/machine/cores",
                                    "/machine/memory_bytes",
                                    "/machine/quiet",
                                    "/machine/load_before",
                                    "/machine/noise_percent",
                                    "/machine/versions",
                                    "/areas",
                                    "/areas/0/name",
                                    "/areas/0/title",
                                    "/areas/0/seconds",
                                    "/areas/0/skipped",
                                    "/areas/0/figures",
                                    "/areas/0/figures/0/id",
                                    "/areas/0/figures/0/name",
                                    "/areas/0/figures/0/unit",
                                    "/areas/0/figures/0/better",
                                    "/areas/0/figures/0/kiln",
                                    "/areas/0/figures/0/kiln/samples",
                                    "/areas/0/figures/0/peer",
                                    "/areas/0/figures/0/peer/name",
                                    "/areas/0/figures/0/peer/samples",
                                    "/areas/0/figures/0/ratio",
                                    "/areas/0/figures/0/target",
                                    "/areas/0/figures/0/target/value",
                                    "/areas/0/figures/0/verified",
                                    "/areas/0/figures/0/stable",
                                    "/areas/0/figures/0/group",
                                    "/areas/0/figures/0/device"}) {
    INFO(pointer);
    Json document = document_of(whole_bench);
    const Json::json_pointer at(pointer);
    document[at.parent_pointer()].erase(at.back());
    const auto read = read_bench(document);
    REQUIRE_FALSE(read);
    CHECK_THAT(read.error().message, Catch::EndsWith(at.back() + ": is missing"));
  }
  CHECK(read_bench(document_of("[]")).error().message == "the document: expected an object, found []");
}

TEST_CASE("bench file: spreads may be a point, and a figure stands once") {
  Json document = document_of(whole_bench);
  Json& kiln = document["areas"][0]["figures"][0]["kiln"];
  kiln["low"] = kiln["high"] = kiln["median"];
  CHECK(read_bench(document));
  document["areas"][0]["figures"][1] = document["areas"][0]["figures"][0];
  const auto twice = read_bench(document);
  REQUIRE_FALSE(twice);
  CHECK_THAT(twice.error().message,
             Contains("expected each figure once, but 'cache.hit@2 threads on cpu' appears twice"));
  document["areas"][0]["figures"][1]["group"] = nullptr;
  CHECK(read_bench(document));
}

TEST_CASE("bench file: files that are not there, no JSON or of another kind are refused by name") {
  const TemporaryFolder folder;
  const auto absent = read_bench_file(folder / "absent.json");
  REQUIRE_FALSE(absent);
  CHECK(absent.error().code == StatusCode::not_found);
  CHECK(absent.error().message == (folder / "absent.json").string() + ": no such file");
  const auto text = read_bench_file(folder.write("text.json", "{"));
  REQUIRE_FALSE(text);
  CHECK(text.error().message == (folder / "text.json").string() + ": not a JSON document");
  const auto folder_itself = read_bench_file(folder.path());
  REQUIRE_FALSE(folder_itself);
  CHECK_THAT(folder_itself.error().message, Contains("found a folder"));
  CHECK(read_bench_file(folder.write("bench.json", whole_bench))->areas.size() == 2);

  const auto figures = read_program_figures(folder.write(
      "figures.json", R"({"schema": 1, "kind": "figures", "versions": {"a": "b"}, "skipped": "why", "figures": [)" +
                          whole_figure + "]}"));
  REQUIRE(figures);
  CHECK(figures->figures.size() == 1);
  CHECK(figures->versions.at("a") == "b");
  CHECK(figures->skipped == "why");
  const auto other = read_program_figures(folder / "bench.json");
  REQUIRE_FALSE(other);
  CHECK(other.error().message == (folder / "bench.json").string() + ": kind: expected \"figures\", found \"bench\"");
}

TEST_CASE("bench file: numbers have three digits, but every digit of a whole one") {
  const auto text = [](double median) { return spread_text({median, median, median, 1}, ""); };
  CHECK(text(0) == "0");
  CHECK(text(-5) == "-5");
  CHECK(text(123456789) == "123456789");
  CHECK(text(0.0012345) == "0.00123");
  CHECK(text(12.345) == "12.3");
  CHECK(text(99.94) == "99.9");
  CHECK(text(100.4) == "100");
  CHECK(text(1234.5) == "1234");
  CHECK(text(1e9) == "1000000000");
  CHECK(text(-1e9) == "-1e+09");
  CHECK(text(-1234.5) == "-1.23e+03");
  CHECK(spread_text({2, 1, 3, 1}, "ms") == "2 ms (1 to 3)");
  CHECK(spread_text({2, 2, 2, 1}, "ms") == "2 ms");
  CHECK(spread_text({2, 1, 2, 1}, "x") == "2x (1 to 2)");
  CHECK(spread_text({2, 1.999, 2.001, 1}, "x") == "2x");  // alike in three digits
}

TEST_CASE("bench file: the table of a file") {
  CHECK(
      bench_text(whole_file()) ==
      "A processor, 2 cores, 1.0 GiB, Linux, compiler 14, peer 1.2\n"
      "quiet (load 0.25 before, noise 1.5 %)\n"
      "\n"
      "Program cache (cache)\n"
      "                        Kiln             peer                     ratio, above 1 Kiln is better  target        "
      "outputs\n"
      "a hit, 2 threads [cpu]  2.5 ns (2 to 3)  a peer: 10 ns (9 to 11)  4x (3.5 to 4.5)                >= 3x: met    "
      "verified\n"
      "calls|all               3                                                                        <= 2: missed  "
      "WRONG\n"
      "\n"
      "GPU (gpu)\n"
      "not measured: no card\n");
}

TEST_CASE("bench file: the Markdown of a file, whole or of some figures") {
  const std::string head = "| | Kiln | peer | ratio | target |\n|---|---|---|---|---|\n";
  const std::string hit =
      "| a hit, 2 threads [cpu] | 2.5 ns (2 to 3) | a peer: 10 ns (9 to 11) | 4x (3.5 to 4.5) | >= 3x met |\n";
  const std::string calls = "| calls\\|all | 3 | | | <= 2 **missed** **WRONG OUTPUT** |\n";
  const std::string foot =
      "\nMedians and quartiles; ratio: above 1 Kiln is better. Kiln 0.1.0, 2026-11-23: A processor, 2 cores, 1.0 GiB, "
      "Linux, compiler 14, peer 1.2; the machine was quiet (load 0.25 before, noise 1.5 %).\n";
  const BenchFile file = whole_file();
  const auto markdown = [&](std::vector<std::string> ids) { return bench_markdown(file, ids).value(); };
  CHECK(markdown({}) == head + hit + calls + foot);
  CHECK(markdown({"calls", "cache.hit"}) == head + calls + hit + foot);
  CHECK(markdown({"cache.hit@2 threads"}) == head + hit + foot);
  CHECK(markdown({"cache.hit@2_threads"}) == head + hit + foot);
  const std::vector<std::string> absent{"cache.hit", "hit"};
  const auto refused = bench_markdown(file, absent);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message == "figure 'hit': not found");
}

TEST_CASE("compare_bench: a margin counts from its border on, and ranges that touch are noise") {
  const auto change = [](double median, double low, double high, double margin = 0.25) {
    const auto changes = compare_bench(file_of(figure_of({100, 100, 100, 5})),
                                       file_of(figure_of({median, low, high, 5})), Compared::everything, margin);
    REQUIRE(changes.size() == 1);
    return changes[0];
  };
  CHECK(change(80, 80, 80).change == Change::better);  // 1.25 times
  CHECK(change(80, 80, 80).factor == 1.25);
  CHECK(change(81, 81, 81).change == Change::same);
  CHECK(change(125, 125, 125).change == Change::worse);
  CHECK(change(124, 124, 124).change == Change::same);
  CHECK(change(200, 100, 300).change == Change::same);
  CHECK(change(200, 101, 300).change == Change::worse);
  CHECK(change(50, 40, 100).change == Change::same);
  CHECK(change(50, 40, 99).change == Change::better);
}

TEST_CASE("compare_bench: a count that became or was 0 is a million times as much") {
  const auto factor = [](double before, double after, bool more) {
    BenchFigure old = figure_of({before, before, before, 1}), now = figure_of({after, after, after, 1});
    old.stable = now.stable = true;
    old.more_is_better = now.more_is_better = more;
    return compare_bench(file_of(old), file_of(now), Compared::counts, 0.1).at(0).factor;
  };
  CHECK(factor(0, 0, false) == 1.0);
  CHECK(factor(3, 0, false) == 1e6);
  CHECK(factor(0, 3, false) == 1e-6);
  CHECK(factor(0, 3, true) == 1e6);
  CHECK(factor(2, 8, true) == 4.0);
  CHECK(factor(2, 8, false) == 0.25);
}

TEST_CASE("compare_bench: a count is the same only if its whole spread is") {
  BenchFigure old = figure_of({3, 2, 4, 1});
  old.stable = true;
  const auto change = [&](const Spread& spread) {
    BenchFigure now = old;
    now.kiln = spread;
    return compare_bench(file_of(old), file_of(now), Compared::counts, 0.1).at(0).change;
  };
  CHECK(change({3, 2, 4, 9}) == Change::same);
  CHECK(change({3, 1, 4, 1}) == Change::worse);
  CHECK(change({3, 2, 5, 1}) == Change::worse);
  CHECK(change({2, 2, 4, 1}) == Change::better);
}

TEST_CASE("compare_bench: machines are the same if processor and cores are") {
  const auto change = [](const std::string& cpu, std::uint64_t cores) {
    BenchFile before = file_of(figure_of({1, 1, 1, 1})), after = before;
    before.machine.cpu = "A", before.machine.cores = 2;
    after.machine.cpu = cpu, after.machine.cores = cores;
    return compare_bench(before, after, Compared::everything, 0.1).at(0).change;
  };
  CHECK(change("A", 2) == Change::same);
  CHECK(change("B", 2) == Change::incomparable);
  CHECK(change("A", 3) == Change::incomparable);
}

TEST_CASE("compare_bench: which changes are regressions") {
  const struct {
    Change change;
    bool of_all, of_counts;
  } expected[] = {{Change::worse, true, true},    {Change::better, false, true},       {Change::missing, false, true},
                  {Change::added, false, true},   {Change::incomparable, false, true}, {Change::same, false, false},
                  {Change::invalid, false, false}};
  for (const auto& one : expected) {
    FigureChange change;
    change.change = one.change;
    CHECK(is_regression(change, Compared::everything) == one.of_all);
    CHECK(is_regression(change, Compared::counts) == one.of_counts);
  }
}

TEST_CASE("merge_passes: targets of every direction, and values of 0") {
  const auto met = [](const std::string& text, double value, double kiln, double ratio) {
    BenchFigure figure = figure_of({kiln, kiln, kiln, 1});
    figure.peer_name = "p";
    figure.peer = figure.ratio = {ratio, ratio, ratio, 1};
    figure.target = BenchTarget{text, value, false};
    const BenchFigure again = figure;
    merge_passes(figure, again);
    return figure.target->met;
  };
  CHECK(met("<= 2 ns", 2, 2, 9));
  CHECK_FALSE(met("<= 2 ns", 2, 2.5, 1));
  CHECK(met(">= 2 ns", 2, 2, 1));
  CHECK_FALSE(met(">= 2 ns", 2, 1.5, 9));
  CHECK(met(">= 2x", 2, 1, 2));
  CHECK_FALSE(met(">= 2x", 2, 9, 1.5));
  CHECK(met("<= 2x", 2, 9, 2));
  BenchFigure zero = figure_of({0, 0, 0, 1});
  merge_passes(zero, figure_of({3, 3, 3, 2}));
  CHECK(zero.kiln.median == 1.5);
  CHECK(zero.kiln.samples == 3);
  CHECK(zero.passes == 2);
  merge_passes(zero, figure_of({0, 0, 0, 1}));
  CHECK(zero.kiln.median == Approx(1));  // of 0, 3 and 0
}
