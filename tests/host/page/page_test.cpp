// What a page file holds, read as text: the sources as JSON, and nothing that is fetched or run but its own scripts.
#include "host/page/page_files.hpp"

#include <catch2/catch.hpp>

#include <iterator>
#include <regex>
#include <set>

using namespace kiln::test;
using Catch::Matchers::Contains;
using nlohmann::json;

namespace {

std::filesystem::path stored(const TemporaryFolder& folder, const std::string& name, const json& document) {
  return folder.write(name, document.dump());
}

std::ptrdiff_t count_of(const std::string& text, const std::string& form) {
  const std::regex pattern(form);
  return std::distance(std::sregex_iterator(text.begin(), text.end(), pattern), std::sregex_iterator());
}

}  // namespace

TEST_CASE("kiln report: one file holds every kind of source, and fetches nothing") {
  const TemporaryFolder folder("with spaces");
  const RealFiles real = real_files(folder);
  const auto page = folder / "page.html";
  const auto bench = stored(folder, "bench.json", bench_document());
  const Finished finished = report(
      {bench, real.cold, real.warm, real.trace, real.cache, real.stats, folder.write("tuning.tsv", tuning_text())},
      page, {"--title", "All & sundry"});
  INFO(finished.err);
  REQUIRE(finished.status == 0);
  CHECK(finished.out == "");
  const std::string html = text_of(page);
  const json data = data_of(page);

  SECTION("the sources are what the files hold") {
    CHECK(data.at("title") == "All & sundry");
    CHECK_THAT(data.at("made").get<std::string>(), Contains("from 7 sources"));
    std::vector<std::string> kinds;
    for (const json& source : data.at("sources")) kinds.push_back(source.at("kind"));
    CHECK(kinds == std::vector<std::string>{"bench", "run", "run", "trace", "cache", "cache", "tuning"});
    const json& sources = data.at("sources");
    CHECK(sources[0].at("content") == bench_document());
    CHECK(sources[0].at("name") == bench.string());
    CHECK(sources[0].at("label") == "bench.json");
    CHECK(sources[0].at("bytes") == text_of(bench).size());
    CHECK(sources[0].at("digest").get<std::string>().size() == 64);
    CHECK(sources[1].at("content") == json::parse(text_of(real.cold)));
    CHECK(sources[2].at("content") == json::parse(text_of(real.warm)));
    CHECK(sources[5].at("content") == json::parse(text_of(real.stats)));
    // The folder as its statistics, with its programs.
    CHECK(sources[4].at("digest").is_null());
    CHECK(sources[4].at("content").at("programs") == sources[5].at("content").at("programs"));
    CHECK(sources[4].at("content").at("memory_hits") == sources[5].at("content").at("memory_hits"));
    CHECK(sources[4].at("content").at("programs_listed").size() == sources[4].at("content").at("programs"));
  }

  SECTION("of a trace every span, of a tuning database every record") {
    std::size_t spans = 0;
    const json trace = json::parse(text_of(real.trace));
    for (const json& event : trace.at("traceEvents")) spans += event.at("ph") == "X" ? 1 : 0;
    std::size_t embedded = 0;
    for (const json& event : data.at("sources")[3].at("content").at("traceEvents")) {
      embedded += event.at("ph") == "X" ? 1 : 0;
    }
    CHECK(spans > 0);
    CHECK(embedded == spans);
    const json& tuning = data.at("sources")[6].at("content");
    CHECK(tuning.at("damaged") == 0);
    REQUIRE(tuning.at("records").size() == 6);
    CHECK(tuning.at("records")[0].at("wall_ms") == json::array({1.9, 2.0, 2.1}));
    CHECK(tuning.at("records")[3].at("verdict") == "rejected");
    CHECK(tuning.at("records")[3].at("why") == "wrong: 3 of 401408 outputs");
  }

  SECTION("nothing is fetched, nothing runs but the page's own scripts") {
    // Chart.js names its home in a comment; nothing else has an address.
    CHECK_FALSE(std::regex_search(html, std::regex("<(link|img|iframe|object|embed|base|form)\\b")));
    CHECK_FALSE(std::regex_search(html, std::regex("<script[^>]*\\bsrc=")));
    CHECK_FALSE(std::regex_search(html, std::regex("<[a-z]+[^>]* on[a-z]+=\"")));
    CHECK_FALSE(std::regex_search(html, std::regex("<[a-z]+[^>]* style=\"")));
    CHECK(count_of(html, "<script") == 3);
    CHECK_THAT(html, Contains("default-src 'none'"));
    CHECK(count_of(html, "'sha256-[A-Za-z0-9+/]{43}='") == 3);
    CHECK(html.find("KILN_") == std::string::npos);
  }
}

TEST_CASE("kiln report: labels are as short as they can be and still differ") {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "a" / "x");
  std::filesystem::create_directories(folder / "b" / "x");
  std::vector<std::filesystem::path> files;
  for (const char* name : {"a/x/run.json", "b/x/run.json", "b/other.json"}) {
    files.push_back(stored(folder, name, run_document("disk")));
  }
  const auto page = folder / "page.html";
  REQUIRE(report(files, page).status == 0);
  std::vector<std::string> labels;
  const json data = data_of(page);
  for (const json& source : data.at("sources")) labels.push_back(source.at("label"));
  CHECK(labels == std::vector<std::string>{"a/x/run.json", "b/x/run.json", "other.json"});
}

TEST_CASE("kiln report: what files hold is data in the page, never markup") {
  const TemporaryFolder folder;
  const auto page = folder / "page.html";
  for (const std::string attack :
       {"</script><script>document.title='taken'</script><img src=x onerror=alert(1)>\u2028\"'&", "</SCRIPT >",
        "<!--<script>", "]]></script\t>", "KILN_DATA KILN_CHART_TEXT", "\\u003c/script>"}) {
    INFO(attack);
    json run = run_document("built");
    run["jobs"][0]["name"] = attack;
    run["jobs"][0]["device"]["id"] = attack;
    run["jobs"][0]["error"] = attack;
    run["jobs"][0]["variant"] = "\x01 bell \x7f";
    REQUIRE(report({stored(folder, "run.json", run)}, page, {"--title", attack}).status == 0);
    const std::string html = text_of(page);
    CHECK(count_of(html, "<[sS][cC][rR][iI][pP][tT]") == 3);
    CHECK(count_of(html, "</[sS][cC][rR][iI][pP][tT]") == 3);
    CHECK(html.find("<img") == std::string::npos);
    CHECK(html.find('\x01') == std::string::npos);
    const json data = data_of(page);
    CHECK(data.at("title") == attack);
    CHECK(data.at("sources")[0].at("content").at("jobs")[0].at("name") == attack);  // letter by letter
  }
}

TEST_CASE("kiln report: a page appears whole or not at all") {
  const TemporaryFolder folder;
  const auto run = stored(folder, "run.json", run_document("built"));
  const auto page = folder.write("page.html", "what stood there before");
  ProcessOptions small;
  small.most_file_bytes = 65536;
  const Finished refused = run_kiln({"report", run, "--output", page}, small);
  CHECK(refused.status == 1);
  CHECK_THAT(refused.err, Contains("page.html"));
  CHECK(text_of(page) == "what stood there before");
  const Finished piped = run_kiln({"report", run});
  CHECK(piped.status == 0);
  CHECK_THAT(piped.out, Contains("</html>"));
  ProcessOptions terminal;
  terminal.output = StandardOutput::terminal;
  const Finished shown = run_kiln({"report", run}, terminal);
  CHECK(shown.status == 2);
  CHECK_THAT(shown.err, Contains("--output FILE"));
}
