// Files that `kiln report` cannot make a page from: each is an error that names the file, the place in it and both
// sides.
#include "host/page/page_files.hpp"

#include <catch2/catch.hpp>

#include <kiln/digest.hpp>

#include <iterator>

using namespace kiln::test;
using Catch::Matchers::Contains;
using nlohmann::json;

namespace {

struct Refusal {
  int status;
  std::string why;
  bool wrote;
};

Refusal refusal_of(const TemporaryFolder& folder, const std::string& text) {
  const auto file = folder.write("a file", text);
  const auto page = folder / "page.html";
  const Finished finished = report({file}, page);
  if (finished.status != 0) CHECK_THAT(finished.err, Contains("a file"));
  return {finished.status, finished.err, std::filesystem::exists(page)};
}

}  // namespace

TEST_CASE("kiln report: a file of no known kind is refused with the kinds there are") {
  const TemporaryFolder folder;
  for (const char* text : {"a,b,c\n1,2,3\n", "{}", "[]", "{\"jobs\": []}", "null", "   ", "\x89PNG\r\n"}) {
    INFO(text);
    const Refusal refusal = refusal_of(folder, text);
    if (std::string(text) == "[]") {  // a trace of no events is one
      CHECK(refusal.status == 0);
      std::filesystem::remove(folder / "page.html");
      continue;
    }
    CHECK(refusal.status == 2);
    CHECK_FALSE(refusal.wrote);
    CHECK_THAT(refusal.why, Contains("kiln run --json") && Contains("kiln tune export"));
  }
  CHECK_THAT(refusal_of(folder, "").why, Contains("is empty") && Contains("expected"));
}

TEST_CASE("kiln report: a file that is cut off anywhere is refused") {
  const TemporaryFolder folder;
  const std::string whole = bench_document().dump();
  for (const std::size_t length : {std::size_t{1}, whole.size() / 3, whole.size() - 1}) {
    const Refusal refusal = refusal_of(folder, whole.substr(0, length));
    CHECK(refusal.status == 2);
    CHECK_FALSE(refusal.wrote);
    CHECK_THAT(refusal.why, Contains("truncated or damaged") && Contains(std::to_string(length) + " bytes"));
  }
}

TEST_CASE("kiln report: a file that nests too deeply is refused") {
  const TemporaryFolder folder;
  const Refusal refusal = refusal_of(
      folder, "{\"kind\": \"bench\", \"schema\": " + std::string(200'000, '[') + std::string(200'000, ']') + "}");
  CHECK(refusal.status == 2);
  CHECK_THAT(refusal.why, Contains("a file: truncated or damaged JSON"));
}

TEST_CASE("kiln report: a field that is not as expected is named with its place and both sides") {
  const TemporaryFolder folder;
  const auto refused = [&](const json& document, const char* pointer, const json& value, const std::string& expected) {
    json changed = document;
    changed[json::json_pointer(pointer)] = value;
    const Refusal refusal = refusal_of(folder, changed.dump());
    INFO(pointer);
    CHECK(refusal.status == 2);
    CHECK_FALSE(refusal.wrote);
    CHECK_THAT(refusal.why, Contains(expected));
  };
  const json bench = bench_document();
  refused(bench, "/schema", 2, "schema 2, expected 1");
  refused(bench, "/machine/quiet", "yes", "machine.quiet: expected true or false, found \"yes\"");
  refused(bench, "/areas/0/figures/1/kiln/median", "fast",
          "areas[0].figures[1].kiln.median: expected a number, found \"fast\"");
  refused(bench, "/areas/0/figures/0/kiln/low", 6.0, "areas[0].figures[0].kiln: expected low <= median <= high");
  refused(bench, "/areas/0/figures/0/better", "bigger", "expected \"less\" or \"more\", found \"bigger\"");
  refused(bench, "/areas/1/figures", json::object(), "areas[1].figures: expected an array, found {}");
  const json run = run_document("disk");
  refused(run, "/jobs/1/ms", json::array(), "jobs[1].ms: expected an object, found an array");
  refused(run, "/jobs/0/runs", 1.5, "jobs[0].runs: expected a whole number of at least 0, found 1.5");
  refused(run, "/cache/shared", {{"layer_hits", 1}, {"hits", -1}},
          "cache.shared.hits: expected a whole number of at least 0, found -1");
  json without = run;
  without["jobs"][0]["ms"].erase("first_result");
  CHECK_THAT(refusal_of(folder, without.dump()).why, Contains("jobs[0].ms.first_result") && Contains("no such member"));
  const json trace{
      {"traceEvents", json::array({{{"ph", "X"}, {"name", "device"}, {"pid", 1}, {"tid", 1}, {"ts", 0}}})}};
  CHECK_THAT(refusal_of(folder, trace.dump()).why, Contains("traceEvents[0].dur"));
}

TEST_CASE("kiln report: times are needed of jobs that ran, and null of others") {
  const TemporaryFolder folder;
  json run = run_document("disk");
  run["jobs"][0]["ms"]["wall_min"] = nullptr;
  CHECK_THAT(refusal_of(folder, run.dump()).why, Contains("jobs[0].ms.wall_min: expected a number of at least 0"));
  run["jobs"][0].update({{"status", "internal"}, {"error", "it broke"}, {"runs", 0}, {"gflops", nullptr}});
  run["jobs"][0]["program"].update({{"tier", nullptr}, {"build_ms", nullptr}});
  for (json& time : run["jobs"][0]["ms"]) time = nullptr;
  const Refusal taken = refusal_of(folder, run.dump());
  INFO(taken.why);
  CHECK(taken.status == 0);
}

TEST_CASE("kiln report: a run that found programs more slowly than they were built is no error") {
  const TemporaryFolder folder;
  json run = run_document("disk");
  run["cache"]["saved_ms"] = -0.883145;
  const Refusal taken = refusal_of(folder, run.dump());
  INFO(taken.why);
  CHECK(taken.status == 0);
  CHECK(taken.wrote);
  run["cache"]["saved_ms"] = "much";
  CHECK_THAT(refusal_of(folder, run.dump()).why, Contains("cache.saved_ms: expected a number, found a text"));
}

TEST_CASE("kiln report: a tuning database of another form is refused, a damaged line is told") {
  const TemporaryFolder folder;
  const Refusal other = refusal_of(folder, "kiln-tuning 2\nsomething\n");
  CHECK(other.status == 2);
  CHECK_THAT(other.why, Contains("format version '2', expected '1'"));
  CHECK_THAT(refusal_of(folder, "kiln-tuning 1\nno record\n").why,
             Contains("1 damaged line, expected at least 1 valid record"));
  std::string text = tuning_text();
  text.resize(text.size() - 20);  // the last record is cut off
  const auto file = folder.write("tuning.tsv", text);
  const auto page = folder / "page.html";
  REQUIRE(report({file}, page).status == 0);
  CHECK(data_of(page).at("sources")[0].at("content").at("damaged") == 1);
  CHECK(data_of(page).at("sources")[0].at("content").at("records").size() == 5);
}

TEST_CASE("kiln report: each kind of value is told from every other") {
  const TemporaryFolder folder;
  const json run = run_document("disk");
  const struct {
    const char* pointer;
    json value;
    const char* message;
  } wrong[] = {
      {"/kiln", 3, "kiln: expected a text, found 3"},
      {"/jobs", json::object(), "jobs: expected an array, found an object"},
      {"/jobs/0", json::array(), "jobs[0]: expected an object, found an array"},
      {"/jobs/1/name", nullptr, "jobs[1].name: expected a text, found null"},
      {"/jobs/0/verified", 1, "jobs[0].verified: expected true or false, found 1"},
      {"/jobs/0/gflops", -1, "jobs[0].gflops: expected a number of at least 0, found -1"},
      {"/jobs/0/gflops", "x", "jobs[0].gflops: expected a number of at least 0, found a text"},
      {"/jobs/0/device", 7, "jobs[0].device: expected an object, found 7"},
      {"/jobs/0/device/id", false, "jobs[0].device.id: expected a text, found false"},
      {"/jobs/0/program", nullptr, "jobs[0].program: expected an object, found null"},
      {"/jobs/0/runs", -1, "jobs[0].runs: expected a whole number of at least 0, found -1"},
      {"/total_ms", json::array(), "total_ms: expected a number of at least 0, found an array"},
      {"/cache/rejected", 3, "cache.rejected: expected an object, found 3"},
      {"/cache/rejected/corrupt", 0.5, "cache.rejected.corrupt: expected a whole number of at least 0, found 0.5"},
      {"/cache/builds", nullptr, "cache.builds: expected a whole number of at least 0, found null"},
  };
  for (const auto& one : wrong) {
    INFO(one.pointer);
    json changed = run;
    changed[json::json_pointer(one.pointer)] = one.value;
    CHECK_THAT(refusal_of(folder, changed.dump()).why, Contains(std::string("a file: ") + one.message + "\n"));
  }
  for (const char* const optional : {"/jobs/0/error", "/jobs/0/device", "/jobs/0/variant", "/jobs/0/gflops",
                                     "/jobs/0/work", "/jobs/0/verified", "/setup_ms", "/cache/shared"}) {
    INFO(optional);
    json changed = run;
    changed[json::json_pointer(optional)] = nullptr;
    CHECK(refusal_of(folder, changed.dump()).status == 0);
  }
}

TEST_CASE("kiln report: of a trace the spans and the names of its processes and threads") {
  const TemporaryFolder folder;
  const json span{{"ph", "X"}, {"name", "run"}, {"cat", "job"}, {"pid", 1}, {"tid", 2}, {"ts", 0}, {"dur", 1.5}};
  const json process{{"ph", "M"}, {"name", "process_name"}, {"pid", 1}, {"args", {{"name", "kiln"}}}};
  const json thread{{"ph", "M"}, {"name", "thread_name"}, {"pid", 1}, {"tid", 2}, {"args", {{"name", "main"}}}};
  const json other{{"ph", "M"}, {"name", "process_labels"}}, counter{{"ph", "C"}};
  json with_more = span;
  with_more["args"] = {{"bytes", 7}};
  const auto page = folder / "page.html";
  const auto events = [&](const json& document) {
    const auto file = folder.write("trace.json", document.dump());
    const Finished finished = report({file}, page);
    INFO(finished.err);
    REQUIRE(finished.status == 0);
    return data_of(page).at("sources")[0].at("content").at("traceEvents");
  };
  const json all = json::array({with_more, process, other, thread, counter});
  CHECK(events({{"traceEvents", all}}) == json::array({span, process, thread}));
  CHECK(events(all) == json::array({span, process, thread}));  // the format's other form
  json nameless = process, elsewhere = thread, early = span;
  nameless["args"].erase("name");
  elsewhere.erase("tid");
  early["ts"] = -1;
  for (const auto& [event, message] :
       {std::pair(nameless, "traceEvents[0].args.name: expected a text, found no such member"),
        std::pair(elsewhere, "traceEvents[0].tid: expected a whole number of at least 0, found no such member"),
        std::pair(early, "traceEvents[0].ts: expected a number of at least 0, found -1"),
        std::pair(json(3), "traceEvents[0]: expected an object, found 3"),
        std::pair(json::object(), "traceEvents[0].ph: expected a text, found no such member")}) {
    CHECK_THAT(refusal_of(folder, json::array({event}).dump()).why, Contains(message));
  }
}

TEST_CASE("kiln report: a record is valid if its digest, its fields, its verdict and its samples are") {
  const TemporaryFolder folder;
  const auto line = [](const std::string& fields) {
    return fields + "\t" + kiln::sha256(fields + "\t").hex().substr(0, 16) + "\n";
  };
  const std::string before = "dev\tspec\tvariant\t", after = "\t1\tm\t1e-07\t1e-05\t";
  const std::string good = line(before + "measured" + after + "3000000,1000000\t5\twhy");
  const std::string without = line(before + "rejected" + after + "\t\twrong");
  const std::string damaged[] = {
      line(before + "guessed" + after + "1\t1\t"),     line(before + "measured" + after + "1x\t1\t"),
      line(before + "measured" + after + "1,,2\t1\t"), line(before + "measured" + after + "1\t1"),
      line(before + "measured" + after + "1\t1\t\t"),  line(before + "measured" + after + "-1\t1\t"),
      good.substr(0, good.size() - 2) + "x\n",         "no tab\n"};
  std::string text = "kiln-tuning 1\n" + good + "\n" + without;
  for (const std::string& one : damaged) text += one;
  const auto page = folder / "page.html";
  REQUIRE(report({folder.write("tuning.tsv", text)}, page).status == 0);
  const json content = data_of(page).at("sources")[0].at("content");
  CHECK(content.at("damaged") == std::size(damaged));
  CHECK(content.at("records") == json::array({{{"device", "dev"},
                                               {"spec", "spec"},
                                               {"variant", "variant"},
                                               {"verdict", "measured"},
                                               {"wall_ms", {1.0, 3.0}},
                                               {"why", "why"}},
                                              {{"device", "dev"},
                                               {"spec", "spec"},
                                               {"variant", "variant"},
                                               {"verdict", "rejected"},
                                               {"wall_ms", json::array()},
                                               {"why", "wrong"}}}));
  for (const std::string& one : damaged) {
    CHECK_THAT(refusal_of(folder, "kiln-tuning 1\n" + one).why,
               Contains("1 damaged line, expected at least 1 valid record"));
  }
  CHECK(refusal_of(folder, "kiln-tuning 1\n").status == 0);
}

TEST_CASE("kiln report: what cannot be read, and usage") {
  const TemporaryFolder folder;
  const auto page = folder / "page.html";
  const Finished absent = report({folder / "absent.json"}, page);
  CHECK(absent.status == 2);
  CHECK_THAT(absent.err, Contains("absent.json") && Contains("No such file"));
  std::filesystem::create_directory(folder / "empty");
  const Finished empty = report({folder / "empty"}, page);
  CHECK(empty.status == 2);
  CHECK_THAT(empty.err, Contains("folder ") && Contains("empty: no program cache found"));
  CHECK(std::filesystem::is_empty(folder / "empty"));  // looked at, and nothing made in it
  const std::string device = "v_d-0123456789abcdef-0123456789abcdef";
  std::filesystem::create_directory(folder / "empty" / device);
  std::filesystem::permissions(folder / "empty" / device, std::filesystem::perms(0770));
  const Finished unread = report({folder / "empty"}, page);
  CHECK(unread.status == 2);
  CHECK_THAT(unread.err, Contains("empty: folder " + device + ": has mode 0770"));
  CHECK(run_kiln({"report", "--output", page}).status == 2);
  CHECK_THAT(run_kiln({"report", "--output", page}).err, Contains("no file given"));
  CHECK_THAT(run_kiln({"report", "--json", "x"}).err, Contains("--json is not supported"));
  CHECK_FALSE(std::filesystem::exists(page));
}
