// What a page holds, read as text: every figure without a script, and nothing that is fetched or run but its own.
#include "host/page/page_files.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <regex>
#include <set>

using namespace kiln::test;
using Catch::Matchers::Contains;
using nlohmann::json;

namespace {

std::filesystem::path stored(const TemporaryFolder& folder, const std::string& name, const json& document) {
  return folder.write(name, document.dump());
}

// What stands in the page's own data, for its charts.
json charts_of(const std::string& page) {
  const std::string opening = "<script type=\"application/json\" id=\"charts\">";
  const std::size_t begin = page.find(opening);
  REQUIRE(begin != std::string::npos);
  const std::size_t from = begin + opening.size();
  return json::parse(page.substr(from, page.find("</script>", from) - from));
}

double sum_of(const json& chart, std::size_t category) {
  double sum = 0;
  for (const json& series : chart.at("series")) sum += series.at("points").at(category).at(0).get<double>();
  return sum;
}

}  // namespace

TEST_CASE("kiln report: one file from every kind of source, complete without a script") {
  const TemporaryFolder folder("with spaces");
  const RealFiles real = real_files(folder);
  const auto page = folder / "page.html";
  const Finished finished = report({stored(folder, "bench.json", bench_document()), real.cold, real.warm, real.trace,
                                    real.cache, real.stats, folder.write("tuning.tsv", tuning_text())},
                                   page, {"--title", "All & sundry"});
  INFO(finished.err);
  REQUIRE(finished.status == 0);
  CHECK(finished.out.empty());
  const std::string html = text_of(page);

  SECTION("a section each, and the figures of each in a table") {
    for (const char* id : {"overview", "bench-1-cache", "bench-2-conv", "bench-3-pm4", "start", "cache", "devices",
                           "roofline", "tuning-1", "lanes-1", "sources"}) {
      CHECK_THAT(html, Contains("<section id=\"" + std::string(id) + "\""));
      CHECK_THAT(html, Contains("<a href=\"#" + std::string(id) + "\">"));
    }
    CHECK_THAT(html, Contains("<h1>All &amp; sundry</h1>"));
    CHECK_THAT(html, Contains("Not measured: there is no simulator"));
    CHECK_THAT(html, Contains("4.90 (4.66 to 5.15)"));    // the hit, with its quartiles
    CHECK_THAT(html, Contains("&lt;= 5000 ns: missed"));  // told in the area
    CHECK_THAT(html, Contains("What fell short"));
    CHECK_THAT(html, Contains("wrong: 3 of 401408 outputs"));
    CHECK_THAT(html, Contains("tiny &lt;b&gt;&amp;&lt;/<wbr>b&gt;"));
  }

  SECTION("every chart has its table, every table its rows") {
    const json charts = charts_of(html);
    CHECK(charts.size() >= 12);
    for (const auto& [id, chart] : charts.items()) {
      INFO(id);
      CHECK_THAT(html, Contains("data-chart=\"" + id + "\""));
      REQUIRE_FALSE(chart.at("series").empty());
      for (const json& series : chart.at("series")) {
        if (chart.contains("categories") && (chart.at("kind") == "bars" || chart.at("kind") == "rows")) {
          CHECK(series.at("points").size() == chart.at("categories").size());
        }
      }
    }
    CHECK(html.find("<tbody>\n</tbody>") == std::string::npos);
  }

  SECTION("nothing is fetched, nothing runs but the page's own scripts") {
    // Chart.js names its home in a comment; nothing else has an address.
    CHECK_FALSE(std::regex_search(html, std::regex("<(link|img|iframe|object|embed|base|form)\\b")));
    CHECK_FALSE(std::regex_search(html, std::regex("<script[^>]*\\bsrc=")));
    CHECK_FALSE(std::regex_search(html, std::regex("<[a-z]+[^>]* on[a-z]+=\"")));
    CHECK_FALSE(std::regex_search(html, std::regex("<[a-z]+[^>]* style=\"")));
    CHECK_THAT(html, Contains("default-src 'none'"));
  }

  SECTION("ids are single and headings skip no level") {
    std::set<std::string> ids;
    const std::regex id_form("<[a-z0-9]+[^>]* id=\"([^\"]*)\"");
    const std::string markup = html.substr(0, html.find("<script"));
    for (std::sregex_iterator at(markup.begin(), markup.end(), id_form), end; at != end; ++at) {
      CHECK(ids.insert((*at)[1].str()).second);
    }
    CHECK(ids.size() > 20);
    int level = 0;
    const std::regex heading("<h([1-6])[ >]");
    for (std::sregex_iterator at(markup.begin(), markup.end(), heading), end; at != end; ++at) {
      const int next = std::stoi((*at)[1].str());
      CHECK(next <= level + 1);
      level = next;
    }
  }
}

TEST_CASE("kiln report: the parts of a start add up to the first results") {
  const TemporaryFolder folder;
  const auto page = folder / "page.html";
  REQUIRE(
      report({stored(folder, "cold.json", run_document("built")), stored(folder, "warm.json", run_document("disk"))},
             page)
          .status == 0);
  const json chart = charts_of(text_of(page)).at("start-by-tier");
  CHECK(chart.at("categories") == json::array({"cold.json", "warm.json"}));
  CHECK(chart.at("stacked") == true);
  // Set-up once, and of each job what its first result took beyond it.
  CHECK(sum_of(chart, 0) == Approx(5 + (150 - 5) + (300 - 5)));
  CHECK(sum_of(chart, 1) == Approx(5 + (12 - 5) + (24 - 5)));
  const auto built =
      std::ranges::find(chart.at("series"), "programs built", [](const json& one) { return one.at("name"); });
  REQUIRE(built != chart.at("series").end());
  CHECK(built->at("points").at(0).at(0) == 270.0);
  CHECK(built->at("points").at(1).at(0) == 0.0);
}

TEST_CASE("kiln report: a bench's figures keep their units, spreads and contenders") {
  const TemporaryFolder folder;
  const auto page = folder / "page.html";
  REQUIRE(report({stored(folder, "bench.json", bench_document())}, page).status == 0);
  const json charts = charts_of(text_of(page));
  const json& ratios = charts.at("bench-1-cache-ratios");
  CHECK(ratios.at("x").at("scale") == "logarithmic");
  CHECK(ratios.at("x").at("mark").at("value") == 1.0);
  CHECK(ratios.at("categories").size() == 2);  // what has no peer has no ratio
  const json& layers = charts.at("bench-2-conv-1");
  CHECK(layers.at("categories") == json::array({"res2_3x3", "res3_3x3", "res4_3x3"}));
  std::set<std::string> names;
  for (const json& series : layers.at("series")) names.insert(series.at("name"));
  CHECK(names == std::set<std::string>{"Kiln, cpu", "Kiln, opengl:0", "oneDNN beside Kiln, cpu",
                                       "oneDNN beside Kiln, opengl:0"});
  CHECK(layers.at("series").at(0).at("points").at(0) == json::array({1.5, 1.425, 1.575, "Kiln"}));
}

TEST_CASE("kiln report: what files hold is text in the page, never markup") {
  const TemporaryFolder folder;
  json run = run_document("built");
  const std::string attack = "</script><script>document.title='taken'</script><img src=x onerror=alert(1)>\u2028\"'&";
  run["jobs"][0]["name"] = attack;
  run["jobs"][0]["device"]["id"] = attack;
  run["jobs"][0]["error"] = attack;
  run["jobs"][0]["variant"] = "\x01 bell \x7f";
  const auto page = folder / "page.html";
  REQUIRE(report({stored(folder, "run.json", run)}, page).status == 0);
  const std::string html = text_of(page);
  CHECK(html.find("<script>document") == std::string::npos);
  CHECK(html.find("<img") == std::string::npos);
  CHECK(html.find('\x01') == std::string::npos);
  CHECK_THAT(html, Contains("&lt;/script&gt;&lt;script&gt;document.title=&#39;taken&#39;"));
  bool found = false;
  const json charts = charts_of(html);
  for (const json& name : charts.at("devices-time").at("categories")) found = found || name == attack;
  CHECK(found);  // the chart has it letter by letter
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
