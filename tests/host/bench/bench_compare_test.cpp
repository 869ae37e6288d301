// `kiln bench compare` and `kiln bench table` on files that are made up: regressions are told from noise.
#include "host/kiln_process.hpp"

#include "verbs/bench_compare.hpp"

#include <catch2/catch.hpp>

#include <fstream>
#include <sstream>

using namespace kiln::test;
using namespace kiln::host;
using Catch::Matchers::Contains;

namespace {

BenchFigure timed(const std::string& id, Spread kiln) {
  BenchFigure figure;
  figure.id = figure.name = id;
  figure.unit = "ns";
  kiln.samples = 5;
  figure.kiln = kiln;
  return figure;
}

BenchFigure beside(BenchFigure figure, Spread ratio) {
  figure.peer_name = "a peer";
  figure.peer = {10, 9, 11, 5};
  figure.ratio = ratio;
  return figure;
}

BenchFigure counted_at(const std::string& id, double count) {
  BenchFigure figure = timed(id, {count, count, count, 0});
  figure.unit = "calls";
  figure.stable = true;
  return figure;
}

BenchFile bench_of(std::vector<BenchFigure> figures, const std::string& cpu = "A processor") {
  BenchFile file;
  file.kiln = "0.1.0";
  file.started = "2026-11-23T12:00:00Z";
  file.machine.cpu = cpu;
  file.machine.cores = 2;
  file.machine.memory_bytes = 1u << 30;
  file.areas.push_back({"cache", "Program cache", 1, std::nullopt, std::move(figures)});
  return file;
}

std::string nested(std::size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); }

Change only_change(const BenchFigure& before, const BenchFigure& after, Compared what = Compared::everything) {
  const auto changes = compare_bench(bench_of({before}), bench_of({after}), what, 0.1);
  REQUIRE(changes.size() == 1);
  return changes[0].change;
}

}  // namespace

TEST_CASE("compare_bench: ranges that overlap, and differences below a tenth, are noise") {
  const BenchFigure before = timed("t", {100, 95, 105, 0});
  CHECK(only_change(before, timed("t", {120, 104, 130, 0})) == Change::same);  // overlap
  CHECK(only_change(before, timed("t", {108, 106, 109, 0})) == Change::same);  // apart, but 8 %
  CHECK(only_change(before, timed("t", {120, 106, 130, 0})) == Change::worse);
  CHECK(only_change(before, timed("t", {80, 75, 90, 0})) == Change::better);
  BenchFigure rate = before, lower = timed("t", {80, 75, 90, 0});
  rate.more_is_better = lower.more_is_better = true;
  CHECK(only_change(rate, lower) == Change::worse);
}

TEST_CASE("compare_bench: with the same peer the ratio counts, whatever the machine took") {
  const BenchFigure before = beside(timed("t", {100, 95, 105, 0}), {3, 2.8, 3.2, 0});
  CHECK(only_change(before, beside(timed("t", {300, 290, 310, 0}), {3.1, 2.9, 3.3, 0})) == Change::same);
  CHECK(only_change(before, beside(timed("t", {100, 95, 105, 0}), {2, 1.9, 2.1, 0})) == Change::worse);
  BenchFigure other = beside(timed("t", {100, 95, 105, 0}), {2, 1.9, 2.1, 0});
  other.peer_name = "another peer";
  CHECK(only_change(before, other) == Change::same);  // by Kiln's own value
}

TEST_CASE("compare_bench: times of two processors say nothing, ratios and counts do") {
  const auto changes = compare_bench(
      bench_of({timed("t", {100, 95, 105, 0}), beside(timed("r", {1, 1, 1, 0}), {3, 2.8, 3.2, 0}), counted_at("c", 3)}),
      bench_of({timed("t", {500, 495, 505, 0}), beside(timed("r", {1, 1, 1, 0}), {1, 0.9, 1.1, 0}), counted_at("c", 4)},
               "Another processor"),
      Compared::everything, 0.1);
  REQUIRE(changes.size() == 3);
  CHECK(changes[0].change == Change::worse);  // c
  CHECK(changes[1].change == Change::worse);  // r
  CHECK(changes[2].change == Change::incomparable);
  CHECK(changes[0].of == "c");
  CHECK(changes[0].before == "3 calls");
  CHECK(changes[0].after == "4 calls");
  CHECK(changes[1].of == "ratio to a peer");
  CHECK(changes[1].before == "3x (2.8 to 3.2)");
  CHECK(changes[1].after == "1x (0.9 to 1.1)");
  CHECK(changes[2].of == "t");
}

TEST_CASE("compare_bench: counts are exact, and every difference of them counts") {
  CHECK(only_change(counted_at("c", 1000), counted_at("c", 1000), Compared::counts) == Change::same);
  CHECK(only_change(counted_at("c", 1000), counted_at("c", 1001), Compared::counts) == Change::worse);
  CHECK(only_change(counted_at("c", 0), counted_at("c", 1), Compared::counts) == Change::worse);
  CHECK(only_change(counted_at("c", 1000), counted_at("c", 999), Compared::counts) == Change::better);
  const auto changes = compare_bench(bench_of({counted_at("old", 1), timed("t", {1, 1, 1, 0})}),
                                     bench_of({counted_at("new", 1), timed("t", {9, 9, 9, 0})}), Compared::counts, 0.1);
  REQUIRE(changes.size() == 2);
  CHECK(changes[0].change == Change::missing);
  CHECK(changes[1].change == Change::added);
  CHECK(changes[0].of == "old");
  CHECK(changes[1].of == "new");
  for (const FigureChange& change : changes) {
    CHECK(is_regression(change, Compared::counts));
    CHECK_FALSE(is_regression(change, Compared::everything));
  }
}

TEST_CASE("compare_bench: an output that became wrong is worse, however fast it came") {
  BenchFigure right = timed("t", {100, 95, 105, 0}), wrong = timed("t", {50, 45, 55, 0});
  right.verified = true;
  wrong.verified = false;
  for (const BenchFigure& before : {right, timed("t", {100, 95, 105, 0})}) {
    const auto changes = compare_bench(bench_of({before}), bench_of({wrong}), Compared::everything, 0.1);
    CHECK(changes[0].change == Change::worse);
    CHECK(changes[0].after == "50 ns (45 to 55), WRONG");
    CHECK_FALSE(changes[0].factor.has_value());
  }
  CHECK(only_change(wrong, wrong) == Change::same);
  CHECK(only_change(wrong, right) == Change::worse);  // by its time
}

TEST_CASE("compare_bench: a figure in another unit, or with another direction, is another figure") {
  BenchFigure micros = counted_at("c", 3), rate = counted_at("c", 3);
  micros.unit = "us";
  rate.more_is_better = true;
  for (const BenchFigure& after : {micros, rate}) {
    const auto changes = compare_bench(bench_of({counted_at("c", 3)}), bench_of({after}), Compared::counts, 0.1);
    REQUIRE(changes.size() == 1);
    CHECK(changes[0].change == Change::incomparable);
    CHECK(changes[0].before == "3 calls");
    CHECK_FALSE(changes[0].factor.has_value());
    CHECK(is_regression(changes[0], Compared::counts));
    CHECK_FALSE(is_regression(changes[0], Compared::everything));
  }
}

TEST_CASE("kiln bench compare: status 1 on a regression, named with both values") {
  const TemporaryFolder folder;
  const auto write = [&](const char* name, const BenchFile& file) {
    return folder.write(name, bench_file_text(file)).string();
  };
  const auto before = write("before.json", bench_of({timed("cache.hit", {100, 95, 105, 0}), counted_at("calls", 3)}));
  const auto after = write("after.json", bench_of({timed("cache.hit", {200, 190, 210, 0}), counted_at("calls", 3)}));
  const Finished worse = run_kiln({"bench", "compare", before, after});
  INFO(worse.out << worse.err);
  CHECK(worse.status == 1);
  CHECK_THAT(worse.out, Contains("worse") && Contains("cache.hit") && Contains("100 ns (95 to 105)") &&
                            Contains("200 ns (190 to 210)") && Contains("1 regression"));
  CHECK(run_kiln({"bench", "compare", after, before}).status == 0);
  CHECK(run_kiln({"bench", "compare", before, before}).status == 0);
  CHECK(run_kiln({"bench", "compare", "--stable", before, after}).status == 0);
  const auto json = run_kiln({"bench", "compare", before, after, "--json"}).json();
  CHECK(json["regressions"] == 1);
  REQUIRE(json["figures"].size() == 2);
  CHECK(json["figures"][0]["figure"] == "cache.hit");
  CHECK(json["figures"][0]["factor"] == Approx(0.5));
  const auto other = write("other.json", bench_of({timed("cache.miss", {1, 1, 1, 0})}));
  const auto unlike = run_kiln({"bench", "compare", before, other, "--json"}).json();
  for (const auto& figure : unlike["figures"]) CHECK(figure["factor"].is_null());
}

TEST_CASE("parse_json: what nests too deeply to be written is no document") {
  CHECK(kiln::parse_json(nested(512)).is_array());
  CHECK(kiln::parse_json(nested(513)).is_discarded());
  CHECK(kiln::parse_json("[\"" + std::string(600, '[') + "\\\"" + std::string(600, '{') + "\", []]").size() == 2);
  CHECK(kiln::parse_json("[" + std::string(600, ' ') + "]]").is_discarded());
}

TEST_CASE("kiln bench compare: files that cannot be compared") {
  const TemporaryFolder folder;
  const auto good = folder.write("good.json", bench_file_text(bench_of({timed("t", {1, 1, 1, 0})}))).string();
  const auto other = folder.write("other.json", R"({"schema": 1, "kind": "run"})").string();
  const auto deep = folder.write("deep.json", "{\"schema\": " + nested(200'000) + "}").string();
  const struct {
    std::vector<std::string> words;
    std::string says;
  } cases[] = {{{}, "expected 2"},
               {{good}, "number of files is 1, expected 2"},
               {{good, folder / "absent.json"}, "absent.json: no such file"},
               {{good, deep}, "deep.json: not a JSON document"},
               {{good, other}, "other.json: kind: expected \"bench\", found \"run\""},
               {{"--stable", good, good}, "neither file has a figure"}};
  for (const auto& each : cases) {
    std::vector<std::string> words{"bench", "compare"};
    words.insert(words.end(), each.words.begin(), each.words.end());
    const Finished done = run_kiln(words);
    CHECK(done.status == 2);
    CHECK_THAT(done.err, Contains(each.says));
  }
}

TEST_CASE("kiln bench table: the figures named, in that order, in Markdown") {
  const TemporaryFolder folder;
  BenchFigure grouped = beside(timed("b", {2.5, 2, 3, 0}), {4, 3.5, 4.5, 0});
  grouped.group = "2 threads";
  grouped.target = BenchTarget{">= 3x", 3, true};
  const auto file =
      folder.write("f.json", bench_file_text(bench_of({timed("a|b", {100, 95, 105, 0}), grouped}))).string();
  const Finished done = run_kiln({"bench", "table", file, "b@2_threads", "a|b"});
  INFO(done.out << done.err);
  REQUIRE(done.status == 0);
  const std::string second =
      "| b, 2 threads | 2.5 ns (2 to 3) | a peer: 10 ns (9 to 11) | 4x (3.5 to 4.5) | >= 3x met |\n"
      "| a\\|b | 100 ns (95 to 105) | | |  |\n";
  CHECK_THAT(done.out, Contains(second));
  CHECK_THAT(done.out, Contains("A processor") && Contains("NOT quiet"));
  grouped.verified = false;
  const auto wrong = folder.write("wrong.json", bench_file_text(bench_of({grouped}))).string();
  CHECK_THAT(run_kiln({"bench", "table", wrong}).out, Contains(">= 3x met **WRONG OUTPUT** |"));
  const Finished absent = run_kiln({"bench", "table", file, "c"});
  CHECK(absent.status == 1);
  CHECK_THAT(absent.err, Contains("figure 'c'"));
}

// The tables in the README are what the command makes of the file in the repository: after either was changed,
// scripts/readme-figures writes them anew.
TEST_CASE("the README's figures are those of the bench file in the repository") {
  const std::filesystem::path source = KILN_SOURCE_DIR;
  std::ifstream stream(source / "README.md");
  int tables = 0;
  for (std::string line; std::getline(stream, line);) {
    const std::string begin = "<!-- kiln bench table ", end = " -->";
    if (!line.starts_with(begin)) continue;
    REQUIRE(line.ends_with(end));
    std::vector<std::string> words{"bench", "table"};
    std::istringstream rest(line.substr(begin.size(), line.size() - begin.size() - end.size()));
    for (std::string word; rest >> word;) words.push_back(word);
    ProcessOptions options;
    options.folder = source;
    const Finished made = run_kiln(words, options);
    INFO(made.err);
    REQUIRE(made.status == 0);
    std::string table;
    while (std::getline(stream, line) && line != "<!-- end of the table -->") table += line + "\n";
    CHECK(table == made.out);
    ++tables;
  }
  CHECK(tables >= 1);
}
