#include "host/kiln_process.hpp"
#include "host/sample_jobs.hpp"
#include "host/tuning_records.hpp"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

using namespace kiln::test;
using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;

namespace {

Finished tune(const TemporaryFolder& folder, std::vector<std::string> more = {}, const ProcessOptions& options = {}) {
  std::vector<std::string> words = {
      "tune",          folder.write("layer.toml", small_layer), "--json", "--device", "opengl:0", "--cache-dir",
      folder / "cache"};
  words.insert(words.end(), more.begin(), more.end());
  return run_kiln(words, options);
}

// Of this test's, by a variable of their environment; a process that was killed takes a moment.
bool no_process_has(const std::filesystem::path& mark) {
  for (int look = 0; look < 500; ++look) {
    bool found = false;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      std::ifstream in(entry.path() / "environ", std::ios::binary);
      std::ostringstream text;
      text << in.rdbuf();
      found = found || text.str().find("KILN_TEST_MARK=" + mark.string()) != std::string::npos;
    }
    if (!found) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

std::string contents(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// The sources in a page of `kiln report`.
nlohmann::json sources_in(const std::filesystem::path& page) {
  const std::string html = contents(page), opening = "<script type=\"application/json\" id=\"data\">";
  const std::size_t begin = html.find(opening);
  REQUIRE(begin != std::string::npos);
  const std::size_t from = begin + opening.size();
  return nlohmann::json::parse(html.substr(from, html.find("</script>", from) - from)).at("sources");
}

}  // namespace

TEST_CASE("tune finds a winner, keeps it, and a later run uses it without building") {
  const TemporaryFolder folder;
  const Finished first = tune(folder, {"--budget", "6 s"});
  INFO(first.err << first.out);
  REQUIRE(first.status == 0);
  const auto job = first.json()["jobs"][0];
  CHECK(job["name"] == "layer");
  CHECK(job["device"] == "opengl:0");
  CHECK(job["error"].is_null());
  CHECK(job["candidates"] >= 1);
  CHECK(job["space"] >= job["candidates"]);
  CHECK(job["rejected"].empty());
  CHECK(job["gflops"] > 0);
  CHECK(job["gflops_device"] >= job["gflops"]);
  CHECK(job["baseline_gflops_device"] > 0);
  const std::string winner = job["variant"];
  CHECK_THAT(contents(folder / "cache/tuning.tsv"), Contains(winner) && Contains("winner"));

  // Warming means the winner: its programs are there, and nothing else is built for the job.
  const Finished warmed = run_kiln(
      {"cache", "warm", folder / "layer.toml", "--json", "--device", "opengl:0", "--cache-dir", folder / "cache"});
  INFO(warmed.err << warmed.out);
  REQUIRE(warmed.status == 0);
  CHECK(warmed.json()["devices"][0]["ready"] >= 1);
  CHECK(warmed.json()["devices"][0]["built"] == 0);

  const Finished run =
      run_kiln({"run", folder / "layer.toml", "--json", "--device", "opengl:0", "--cache-dir", folder / "cache"});
  INFO(run.err);
  REQUIRE(run.status == 0);
  const auto report = run.json();
  CHECK(report["jobs"][0]["variant"] == winner);
  CHECK(report["jobs"][0]["verified"] == true);
  CHECK(report["cache"]["builds"] == 0);
  const auto lines = tuning_lines(folder / "cache/tuning.tsv");
  const auto won = std::ranges::find(lines, "winner", &TuningLine::verdict);
  REQUIRE(won != lines.end());
  const std::string source = won->fields[TuningLine::source];
  std::string passes;
  for (const std::string key : report["jobs"][0]["program"]["keys"]) passes += key.substr(0, 16);
  CHECK_THAT(source, EndsWith(passes));
  CHECK((source == passes) == (winner == "direct/plain"));  // all others prepare the weights

  const Finished again = tune(folder, {"--budget", "1 s"});
  REQUIRE(again.status == 0);
  CHECK(again.json()["jobs"][0]["known"] >= 1);
}

TEST_CASE("tune: of a job that was not measured every time and rate is null") {
  const TemporaryFolder folder;
  const Finished finished = run_kiln(
      {"tune", folder.write("layer.toml", small_layer), "--json", "--device", "cpu", "--cache-dir", folder / "cache"});
  INFO(finished.err);
  const auto job = finished.json()["jobs"][0];
  CHECK_FALSE(job["error"].is_null());
  for (const char* figure :
       {"ms", "baseline_ms", "gflops", "gflops_device", "baseline_gflops", "baseline_gflops_device"}) {
    INFO(figure);
    CHECK(job[figure].is_null());
  }
}

TEST_CASE("tune refuses a file without a job") {
  const TemporaryFolder folder;
  const auto file = folder.write("none.toml", "[selector]\nlog = true\n");
  const Finished finished = run_kiln({"tune", file, "--cache-dir", folder / "cache"});
  CHECK(finished.status == 2);
  CHECK_THAT(finished.err, Contains(file.string() + ": no [[job]]: nothing to tune"));
}

TEST_CASE("tune that is interrupted keeps what it measured") {
  const TemporaryFolder folder;
  ProcessOptions options;
  options.interrupt_when = "layer: 3 of";
  const Finished ended = tune(folder, {"--progress", "plain"}, options);
  CHECK(ended.status < 0);
  const std::string kept = contents(folder / "cache/tuning.tsv");
  CHECK(std::count(kept.begin(), kept.end(), '\n') >= 3);
  CHECK_THAT(kept, !Contains("\twinner\t"));
  const Finished next = tune(folder, {"--budget", "1 s"});
  INFO(next.err);
  REQUIRE(next.status == 0);
  CHECK(next.json()["jobs"][0]["known"] >= 2);
}

TEST_CASE("tune that is killed in the middle goes on from the last record, and leaves no process behind") {
  const TemporaryFolder folder;
  ProcessOptions options;
  options.interrupt_when = "layer: 4 of";
  options.interrupt_by = SIGKILL;
  options.environment["KILN_TEST_MARK"] = folder.path();
  const Finished ended = tune(folder, {"--progress", "plain"}, options);
  REQUIRE(ended.status == -SIGKILL);
  const auto stored = tuning_lines(folder / "cache/tuning.tsv");
  REQUIRE(stored.size() >= 4);
  for (const TuningLine& line : stored) CHECK(line.verdict() == "measured");
  CHECK(no_process_has(folder.path()));

  const Finished next = tune(folder, {"--budget", "4 s"});
  INFO(next.err << next.out);
  REQUIRE(next.status == 0);
  CHECK(next.json()["jobs"][0]["known"] == stored.size());
  // What was measured before stands as it was, but for those that met again at the end.
  const std::string text = contents(folder / "cache/tuning.tsv");
  std::size_t untouched = 0;
  for (const TuningLine& line : stored) untouched += text.find(line.fields[TuningLine::wall]) != std::string::npos;
  CHECK(untouched >= 1);
  const auto lines = tuning_lines(folder / "cache/tuning.tsv");
  CHECK(std::ranges::count(lines, "winner", &TuningLine::verdict) == 1);
}

TEST_CASE("tune tells what has nothing to choose from, and refuses what is not there") {
  const TemporaryFolder folder;
  const Finished on_cpu = run_kiln(
      {"tune", folder.write("layer.toml", small_layer), "--json", "--device", "cpu", "--cache-dir", folder / "cache"});
  CHECK(on_cpu.status == 0);
  CHECK_THAT(std::string(on_cpu.json()["jobs"][0]["error"]), Contains("no variants"));
  const Finished nowhere =
      run_kiln({"tune", folder / "layer.toml", "--device", "opengl:77", "--cache-dir", folder / "cache"});
  CHECK(nowhere.status == 2);
  CHECK_THAT(nowhere.err, Contains("opengl:77"));
  CHECK(run_kiln({"tune", folder / "layer.toml", "--budget", "soon", "--cache-dir", folder / "cache"}).status == 2);
}

TEST_CASE("tune: a product of matrices has variants too, and its winner serves and is audited") {
  const TemporaryFolder folder;
  folder.write("gemm.toml",
               "[[job]]\nname = \"product\"\nop = \"gemm\"\nm = 64\nn = 128\nk = 96\ninput = \"random:1\"\n"
               "weights = \"random:2\"\nverify = true\n");
  const auto kiln = [&](std::vector<std::string> words) {
    words.insert(words.end(), {"--json", "--device", "opengl:0", "--cache-dir", folder / "cache"});
    return run_kiln(words);
  };
  const Finished tuned = kiln({"tune", folder / "gemm.toml", "--budget", "6 s"});
  INFO(tuned.err << tuned.out);
  REQUIRE(tuned.status == 0);
  const std::string winner = tuned.json()["jobs"][0]["variant"];
  CHECK_THAT(winner, Contains("gemm/"));
  CHECK(tuned.json()["jobs"][0]["space"] > 20);
  CHECK(tuned.json()["jobs"][0]["candidates"] > 1);  // how many of them depends on how busy the machine is
  const Finished run = kiln({"run", folder / "gemm.toml"});
  INFO(run.err << run.out);
  CHECK(run.json()["jobs"][0]["variant"] == winner);
  CHECK(run.json()["jobs"][0]["verified"] == true);
  CHECK(run.json()["cache"]["builds"] == 0);
  const Finished audited = kiln({"tune", "audit"});
  INFO(audited.err << audited.out);
  CHECK(audited.json()["winners"] == 1);
  CHECK_THAT(audited.json()["audited"][0]["spec"].get<std::string>(), Contains("gemm m=64 n=128 k=96"));
}

TEST_CASE("tune measures nothing where the cache is only read") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "cache");
  const Finished finished = run_kiln({"tune", folder.write("layer.toml", small_layer), "--json", "--device", "opengl:0",
                                      "--set", "cache.read_only=true", "--cache-dir", folder / "cache"});
  INFO(finished.err << finished.out);
  CHECK(finished.status != 0);
  CHECK_THAT(finished.err + finished.out, Contains("not written") && Contains("cache.read_only"));
  CHECK(std::filesystem::is_empty(folder / "cache"));
}

TEST_CASE("tune audit measures winners again, marks what does not hold, and lifts the mark where it holds again") {
  const TemporaryFolder folder;
  const auto audit = [&](std::vector<std::string> more = {}) {
    std::vector<std::string> words = {"tune",     "audit",       "--json",        "--device",
                                      "opengl:0", "--cache-dir", folder / "cache"};
    words.insert(words.end(), more.begin(), more.end());
    return run_kiln(words);
  };
  const Finished nothing = audit();
  CHECK(nothing.status == 0);
  CHECK(nothing.json()["winners"] == 0);
  REQUIRE(tune(folder, {"--budget", "3 s"}).status == 0);
  const Finished first = audit();
  INFO(first.err << first.out);
  const auto one = first.json()["audited"].at(0);
  CHECK(first.json()["winners"] == 1);
  CHECK(one["wall_ms"] > 0.0);
  CHECK(one["tuned_wall_ms"] > 0.0);
  CHECK(one["holds"] == (first.status == 0));

  const std::string text = contents(folder / "cache/tuning.tsv");
  const Finished exported = run_kiln({"tune", "export", folder / "all.tsv", "--cache-dir", folder / "cache"});
  INFO(exported.err);
  CHECK(exported.status == 0);
  CHECK(contents(folder / "all.tsv") == text);
  CHECK(run_kiln({"tune", "audit", "--device", "opengl:77", "--cache-dir", folder / "cache"}).status == 2);
  CHECK(audit({"--sample", "0"}).status == 2);

  // With two winners more, and an end while the first one waits for its turn: no other one is begun.
  const std::filesystem::path file = folder / "cache/tuning.tsv";
  auto lines = tuning_lines(file);
  const auto won = std::ranges::find(lines, "winner", &TuningLine::verdict);
  REQUIRE(won != lines.end());
  const TuningLine winner = *won;
  for (const char* filters : {" k=16 ", " k=8 "}) {
    TuningLine other = winner;
    std::string& spec = other.fields.at(TuningLine::spec);
    const std::size_t at = spec.find(" k=32 ");
    REQUIRE(at != std::string::npos);
    spec.replace(at, 6, filters);
    lines.push_back(std::move(other));
  }
  std::ofstream(file, std::ios::binary | std::ios::trunc) << tuning_text(lines);
  const int turn = open((folder / "cache/tuning.lock").c_str(), O_RDWR | O_CLOEXEC);
  REQUIRE(turn >= 0);
  const bool is_taken = flock(turn, LOCK_EX | LOCK_NB) == 0;
  ProcessOptions options;
  options.interrupt_when = "another process tunes";
  const Finished ended = run_kiln(
      {"tune", "audit", "--device", "opengl:0", "--progress", "plain", "--cache-dir", folder / "cache"}, options);
  close(turn);
  INFO(ended.err << ended.out);
  CHECK(is_taken);
  CHECK(ended.status == -SIGINT);
  CHECK(ended.out == "");
  CHECK_THAT(ended.err, Contains("opengl:0: winner 0 of 3") && !Contains("winner 1 of 3"));
}

TEST_CASE("tune import takes in what another folder measured, newer records only, and refuses what is no database") {
  const TemporaryFolder folder;
  REQUIRE(tune(folder, {"--budget", "3 s"}).status == 0);
  const std::string measured = contents(folder / "cache/tuning.tsv");
  const auto records = std::count(measured.begin(), measured.end(), '\n') - 1;
  const auto import = [&](const std::string& file) {
    return run_kiln({"tune", "import", file, "--json", "--cache-dir", folder / "elsewhere"});
  };
  std::string damaged = measured;
  damaged[damaged.rfind('\n') - 20] ^= 1;
  const Finished first = import(folder.write("damaged.tsv", damaged));
  INFO(first.err << first.out);
  REQUIRE(first.status == 0);
  CHECK(first.json()["taken"] == records - 1);
  CHECK(first.json()["damaged"] == 1);
  const Finished second = import(folder / "cache/tuning.tsv");
  CHECK(second.json()["taken"] == 1);
  CHECK(second.json()["older"] == records - 1);
  const std::string taken = contents(folder / "elsewhere/tuning.tsv");
  CHECK(std::count(taken.begin(), taken.end(), '\n') == records + 1);

  const Finished served =
      run_kiln({"run", folder / "layer.toml", "--json", "--device", "opengl:0", "--cache-dir", folder / "elsewhere"});
  REQUIRE(served.status == 0);
  CHECK_THAT(taken, Contains(std::string(served.json()["jobs"][0]["variant"])));

  const Finished other = import(folder.write("other.tsv", "something else\n"));
  CHECK(other.status == 1);
  CHECK_THAT(other.err, Contains("found 'something else'") && Contains("expected 'kiln-tuning 1'"));
  CHECK(import(folder / "missing.tsv").status == 2);
  CHECK(contents(folder / "elsewhere/tuning.tsv") == taken);
}

TEST_CASE("kiln report: shows every complete record of a tuning database and rejects other files") {
  const TemporaryFolder folder;
  const std::vector<TuningLine> lines = {
      {{"a device", "a shape", "fast", "winner", "1700000000", "0123", "1e-7", "1e-6", "2000000,1900000,2100000",
        "1500000,1400000,1600000", ""}},
      {{"a device", "a shape", "wrong", "rejected", "1700000001", "4567", "0", "0", "", "", "3 of 8 outputs"}}};
  const auto file = folder.write("tuning.tsv", tuning_text(lines) + "no record\n");
  const Finished made = run_kiln({"report", file, "--output", folder / "page.html"});
  INFO(made.err << made.out);
  if (made.err.find("is built only if Chart.js is installed") != std::string::npos) {
    WARN("skipped: Chart.js is not installed");
    return;
  }
  REQUIRE(made.status == 0);
  const auto sources = sources_in(folder / "page.html");
  REQUIRE(sources.size() == 1);
  CHECK(sources[0].at("kind") == "tuning");
  const auto content = sources[0].at("content");
  CHECK(content.at("damaged") == 1);
  REQUIRE(content.at("records").size() == 2);
  const auto winner = content.at("records")[0], rejected = content.at("records")[1];
  CHECK(winner.at("device") == "a device");
  CHECK(winner.at("spec") == "a shape");
  CHECK(winner.at("variant") == "fast");
  CHECK(winner.at("verdict") == "winner");
  CHECK(winner.at("wall_ms") == nlohmann::json::array({1.9, 2.0, 2.1}));
  CHECK(winner.at("why") == "");
  CHECK(rejected.at("spec") == "a shape");
  CHECK(rejected.at("variant") == "wrong");
  CHECK(rejected.at("verdict") == "rejected");
  CHECK(rejected.at("wall_ms").empty());
  CHECK(rejected.at("why") == "3 of 8 outputs");

  const struct {
    std::string text, says;
  } cases[] = {{"kiln-tuning 2\n", "format version '2', expected '1'"},
               {"kiln-tuning 1\nno record\n", "1 damaged line, expected at least 1 valid record"},
               {"{\"schema\": 1}", "unknown kind of JSON document"},
               {"{\"kind\":", "expected one complete document, found 8 bytes"},
               {"a,b\n1,2\n", "not recognised"},
               {"", "is empty"}};
  for (const auto& one : cases) {
    const Finished refused = run_kiln({"report", folder.write("other", one.text), "--output", folder / "other.html"});
    INFO(one.text << refused.err);
    CHECK(refused.status == 2);
    CHECK_THAT(refused.err, Contains(one.says));
    CHECK_FALSE(std::filesystem::exists(folder / "other.html"));
  }
}
