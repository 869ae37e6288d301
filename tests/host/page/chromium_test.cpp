// Pages in a real browser: every chart is drawn, nothing is complained of or fetched, a phone shows them without
// scrolling sideways, text stands out in light and dark, keys reach everything, and paper has all of it. Pictures are
// kept under pictures/ beside the tests.
#include "host/page/chromium.hpp"
#include "host/page/page_files.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace kiln::test;
using Catch::Matchers::Contains;
using nlohmann::json;

namespace {

const std::filesystem::path pictures = std::filesystem::path(KILN_BINARY_DIR) / "pictures" / "report";

std::filesystem::path full_page(const TemporaryFolder& folder) {
  const RealFiles real = real_files(folder);
  const auto page = folder / "page.html";
  const Finished finished = report(
      {folder.write("bench.json", bench_document().dump()), real.cold, real.warm,
       folder.write("built.json", run_document("built").dump()), folder.write("disk.json", run_document("disk").dump()),
       real.trace, real.cache, folder.write("tuning.tsv", tuning_text())},
      page);
  if (finished.status != 0) throw std::runtime_error(finished.err);
  return page;
}

// Of each chart: drawn by the library, and its canvas holds more than one colour on more than a few of its pixels.
constexpr const char* charts_as_seen = R"((async () => {
  await new Promise(requestAnimationFrame);
  return [...document.querySelectorAll('[data-chart]')].map((holder) => {
    const canvas = holder.querySelector('canvas');
    const seen = {name: holder.dataset.chart, drawn: holder.dataset.drawn === 'true', colours: 0, inked: 0};
    if (!canvas || !canvas.width || !canvas.height) return seen;
    const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
    const colours = new Set();
    for (let i = 0; i < pixels.length; i += 4) {
      if (pixels[i + 3] < 128) continue;
      ++seen.inked;
      colours.add(pixels[i] << 16 | pixels[i + 1] << 8 | pixels[i + 2]);
    }
    seen.colours = colours.size;
    return seen;
  });
})())";

// The texts that stand out too little from what is behind them (WCAG AA: 4.5 to 1, or 3 to 1 where they are large).
constexpr const char* pale_texts = R"((() => {
  const parts = (text) => text.match(/[\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = parts(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const pale = [];
  let looked = 0;
  for (const element of document.querySelectorAll('body *')) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!own || element.closest('script,noscript') || !element.checkVisibility()) continue;
    ++looked;
    const style = getComputedStyle(element);
    const a = light(parts(style.color)), b = light(behind(element));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const large = parseFloat(style.fontSize) >= 24;
    if (ratio < (large ? 3 : 4.5)) pale.push(element.tagName + ' ' + element.textContent.slice(0, 30) + ' ' + ratio);
  }
  return {looked, pale};
})())";

// The lines of data that stand out too little from a chart's paper (WCAG AA: 3 to 1).
constexpr const char* pale_inks = R"((() => {
  const probe = document.body.appendChild(document.createElement('i'));
  const light = (name) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color.match(/[\d.]+/g).slice(0, 3).map((v) => v / 255)
      .map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
      .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  };
  const card = light('card');
  return ['blue', 'vermillion', 'green', 'purple', 'orange', 'sky', 'grey', 'brown', 'olive', 'pink', 'indigo', 'slate',
          'lime', 'maroon'].filter((ink) => {
    const line = light(ink + '-line');
    return (Math.max(card, line) + 0.05) / (Math.min(card, line) + 0.05) < 3;
  });
})())";

// Words of tables, headings and tiles that go on in a second line, though a line has room for them.
constexpr const char* broken_words = R"((() => {
  const broken = [];
  for (const folded of document.querySelectorAll('details')) folded.open = true;
  for (const at of document.querySelectorAll('th, td, h1, h2, h3, .tiles dt, .tiles dd, .legend button')) {
    const texts = document.createTreeWalker(at, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      for (const word of texts.currentNode.data.matchAll(/[\p{L}\p{N}.:]{1,11}(?![\p{L}\p{N}.:])/gu)) {
        if (word.index > 0 && /[\p{L}\p{N}.:]/u.test(texts.currentNode.data[word.index - 1])) continue;
        const range = document.createRange();
        range.setStart(texts.currentNode, word.index);
        range.setEnd(texts.currentNode, word.index + word[0].length);
        const lines = new Set([...range.getClientRects()].map((box) => Math.round(box.top)));
        if (lines.size > 1) broken.push(word[0]);
      }
    }
  }
  return broken;
})())";

// Charts in which two series have one colour.
constexpr const char* shared_colours = R"((() => {
  const shared = [];
  for (const holder of document.querySelectorAll('[data-chart]')) {
    const fills = [...holder.querySelectorAll('.legend path')].map((path) => getComputedStyle(path).fill);
    if (new Set(fills).size !== fills.length) shared.push(holder.dataset.chart + ': ' + fills.join(' '));
  }
  return shared;
})())";

// What stands wider than the screen and does not scroll by itself.
constexpr const char* too_wide = R"((() => {
  const screen_width = document.documentElement.clientWidth;
  const wide = document.documentElement.scrollWidth > screen_width ? ['the page, ' + document.documentElement.scrollWidth] : [];
  for (const one of document.querySelectorAll('main *')) {
    if (!one.closest('.scroll') && one.getBoundingClientRect().right > screen_width + 1) wide.push(one.tagName + ' ' + one.className);
  }
  return wide;
})())";

void check_charts(Chromium& browser) {
  const json charts = browser.ask(charts_as_seen);
  CHECK(charts.size() >= 14);
  for (const json& chart : charts) {
    INFO(chart.dump());
    CHECK(chart.at("drawn") == true);
    CHECK(chart.at("colours").get<int>() >= 8);  // ink, its line, grid, words with their edges
    CHECK(chart.at("inked").get<int>() >= 500);
  }
}

void check_no_complaint(const Chromium& browser) {
  for (const std::string& complaint : browser.complaints()) FAIL_CHECK(complaint);
}

}  // namespace

TEST_CASE("kiln report in Chromium: every chart is drawn on every screen") {
  const TemporaryFolder folder("with spaces and % signs");
  Chromium browser;
  const auto page = full_page(folder);
  const std::pair<const char*, Screen> screens[] = {{"desktop-light", {1280, 900, false}},
                                                    {"desktop-dark", {1280, 900, true}},
                                                    {"phone-light", {360, 740, false}},
                                                    {"phone-dark", {360, 740, true}}};
  for (const auto& [name, screen] : screens) {
    INFO(name);
    browser.open(page, screen);
    check_charts(browser);
    browser.picture(pictures / (std::string(name) + ".png"));
    CHECK(browser.ask(too_wide) == json::array());
    const json texts = browser.ask(pale_texts);
    CHECK(texts.at("looked").get<int>() > 100);
    CHECK(texts.at("pale") == json::array());
    CHECK(browser.ask(pale_inks) == json::array());
    CHECK(browser.ask(broken_words) == json::array());
    CHECK(browser.ask(shared_colours) == json::array());
    check_no_complaint(browser);
    CHECK(std::filesystem::file_size(pictures / (std::string(name) + ".png")) > 20'000);
  }
}

TEST_CASE("kiln report in Chromium: a section for each source, and the figures of each in a table") {
  const TemporaryFolder folder;
  Chromium browser;
  browser.open(full_page(folder), {});
  const json sections = browser.ask("[...document.querySelectorAll('main > section')].map((section) => section.id)");
  CHECK(sections == json::array({"overview", "bench-1-cache", "bench-2-conv", "bench-3-pm4", "start", "cache",
                                 "devices", "roofline", "tuning-1", "lanes-1", "sources"}));
  CHECK(browser.ask("[...document.querySelectorAll('nav a')].map((link) => link.hash.slice(1))") == sections);
  const std::string text = browser.ask("document.body.textContent");
  for (const char* words :
       {"Not measured: there is no simulator", "4.90 (4.66 to 5.15)", "<= 5000 ns: missed", "What fell short",
        "wrong: 3 of 401408 outputs", "tiny <b>&</b>", "3×3 /2, 128→128, 56²", "64×128×256"}) {
    CHECK_THAT(text, Contains(words));
  }
  // Every chart has its table and its points, every table its rows; ids are single and headings skip no level.
  CHECK(browser.ask("document.querySelectorAll('tbody:empty').length") == 0);
  CHECK(
      browser.ask(
          "[...document.querySelectorAll('[data-chart]')].every((one) => one.parentElement.querySelector('table'))") ==
      true);
  CHECK(browser.ask(R"(page.model.flatMap((section) => section.figures).filter((figure) => figure.chart)
    .filter(({ chart: { kind, categories, series } }) => series.length === 0 ||
      ((kind === 'bars' || kind === 'rows') && series.some(({ points }) => points.length !== categories.length)))
    .map((figure) => figure.id))") == json::array());
  CHECK(browser.ask("(() => { const ids = [...document.querySelectorAll('[id]')].map((one) => one.id); return "
                    "ids.length - new Set(ids).size; })()") == 0);
  CHECK(browser.ask("(() => { let level = 0; return [...document.querySelectorAll('h1, h2, h3, h4')].every((one) => { "
                    "const next = Number(one.tagName[1]); "
                    "const right = next <= level + 1; level = next; return right; }); })()") == true);
  check_no_complaint(browser);
}

TEST_CASE("kiln report in Chromium: the parts of a start add up to the first results") {
  const TemporaryFolder folder;
  const auto page = folder / "page.html";
  REQUIRE(report({folder.write("cold.json", run_document("built").dump()),
                  folder.write("warm.json", run_document("disk").dump())},
                 page)
              .status == 0);
  Chromium browser;
  browser.open(page, {});
  const json chart =
      browser.ask("page.model.flatMap((section) => section.figures).find((one) => one.id === 'start-by-tier').chart");
  CHECK(chart.at("categories") == json::array({"cold.json", "warm.json"}));
  CHECK(chart.at("stacked") == true);
  const auto sum_of = [&](std::size_t category) {
    double sum = 0;
    for (const json& series : chart.at("series")) sum += series.at("points").at(category).at(0).get<double>();
    return sum;
  };
  // Set-up once, and of each job what its first result took beyond it.
  CHECK(sum_of(0) == Approx(5 + (150 - 5) + (300 - 5)));
  CHECK(sum_of(1) == Approx(5 + (12 - 5) + (24 - 5)));
  const auto built =
      std::ranges::find(chart.at("series"), "programs built", [](const json& one) { return one.at("name"); });
  REQUIRE(built != chart.at("series").end());
  CHECK(built->at("points").at(0).at(0) == 270.0);
  CHECK(built->at("points").at(1).at(0) == 0.0);
}

TEST_CASE("kiln report in Chromium: programs from layers and remotes are found ones") {
  const TemporaryFolder folder;
  const auto page = folder / "page.html";
  json run = run_document("layer");
  run["jobs"][1]["program"]["tier"] = "remote";
  run["cache"].update({{"misses", 0}, {"builds", 0}, {"shared", {{"layer_hits", 4}, {"hits", 5}}}});
  REQUIRE(report({folder.write("run.json", run.dump())}, page).status == 0);
  Chromium browser;
  browser.open(page, {});
  const auto figure_of = [&](const std::string& id) {
    return browser.ask("page.model.flatMap((section) => section.figures).find((one) => one.id === '" + id + "')");
  };
  CHECK(figure_of("cache-found").at("rows").at(0) ==
        json{"run.json", "1", "0", "4", "5", "0", "100 %", "0", "0", "1 tampered"});
  std::vector<std::string> names;
  for (const char* id : {"start-by-tier", "start-jobs-1", "cache-found"}) {
    const json figure = figure_of(id);
    for (const json& series : figure.at("chart").at("series")) names.push_back(series.at("name"));
  }
  CHECK(names == std::vector<std::string>{"set-up of the process", "programs from layers", "programs from remotes",
                                          "inputs and first run", "programs from layers", "programs from remotes",
                                          "inputs and first run", "in memory", "in a layer", "in a remote"});
}

TEST_CASE("kiln report in Chromium: jobs of one name are compared if their work is the same") {
  const TemporaryFolder folder;
  const auto page = folder / "page.html";
  json one = run_document("built"), other = one;
  one["jobs"][0]["op"] = other["jobs"][0]["op"] = "pipeline";
  for (json& job : other["jobs"]) job["device"]["id"] = "cpu";
  other["jobs"][0]["work"]["bytes"] = 1e6;  // fused
  other["jobs"][1]["work"]["flops"] = 8e9;
  REQUIRE(report({folder.write("one.json", one.dump()), folder.write("other.json", other.dump())}, page).status == 0);
  Chromium browser;
  browser.open(page, {});
  const json rows =
      browser.ask("page.model.find((section) => section.id === 'devices').figures[0].rows.map((row) => row[0])");
  CHECK(rows == json{"first", "second, 125 MFLOP", "second, 8000 MFLOP"});
}

TEST_CASE("kiln report in Chromium: a bench's figures keep their units, spreads and contenders") {
  const TemporaryFolder folder;
  const auto page = folder / "page.html";
  REQUIRE(report({folder.write("bench.json", bench_document().dump())}, page).status == 0);
  Chromium browser;
  browser.open(page, {});
  const auto chart_of = [&](const std::string& id) {
    return browser.ask("page.model.flatMap((section) => section.figures).find((one) => one.id === '" + id + "').chart");
  };
  const json ratios = chart_of("bench-1-cache-ratios");
  CHECK(ratios.at("x").at("scale") == "logarithmic");
  CHECK(ratios.at("x").at("mark").at("value") == 1.0);
  CHECK(ratios.at("categories").size() == 2);  // a figure without a peer has no ratio
  const json layers = chart_of("bench-2-conv-1");
  CHECK(layers.at("categories") == json::array({"res2_3x3", "res3_3x3", "res4_3x3"}));
  std::vector<std::string> names;
  for (const json& series : layers.at("series")) names.push_back(series.at("name"));
  std::ranges::sort(names);
  CHECK(names == std::vector<std::string>{"Kiln, cpu", "Kiln, opengl:0", "oneDNN beside Kiln, cpu",
                                          "oneDNN beside Kiln, opengl:0"});
  const json point = layers.at("series").at(0).at("points").at(0);
  CHECK(point.at(0) == 1.5);
  CHECK(point.at(1).get<double>() == Approx(1.425));
  CHECK(point.at(2).get<double>() == Approx(1.575));
  CHECK(point.at(3) == "Kiln");
}

TEST_CASE("kiln report in Chromium: what a parameter's value costs is the median over the shapes") {
  const TemporaryFolder folder;
  const auto page = folder / "page.html";
  REQUIRE(report({folder.write("tuning.tsv", tuning_text())}, page).status == 0);
  Chromium browser;
  browser.open(page, {});
  const json rows = browser.ask(R"((() => {
    const times = [['a', 4, 2], ['a', 8, 3], ['b', 4, 4], ['b', 8, 2]];
    const records = times.map(([spec, k, ms]) => (
      {device: 'd', spec, variant: 'direct/blocked:k=' + k, verdict: 'measured', wall_ms: [ms]}));
    const model = page.sections({sources: [{kind: 'tuning', label: 'tuning', content: {records, damaged: 0}}]});
    return model.flatMap((section) => section.figures).find((one) => one.id === 'tuning-1-parameters').rows;
  })())");
  CHECK(rows.at(0) == json{"direct/blocked: k=4", "1.50", "1.00 to 2.00", "2"});
  CHECK(rows.at(1) == json{"direct/blocked: k=8", "1.25", "1.00 to 1.50", "2"});
}

TEST_CASE("kiln report in Chromium: the damaged lines of a tuning database are counted") {
  const TemporaryFolder folder;
  const auto page = folder / "page.html";
  std::string text = tuning_text();
  text.resize(text.size() - 20);  // the last record is cut off
  REQUIRE(report({folder.write("tuning.tsv", text)}, page).status == 0);
  Chromium browser;
  browser.open(page, {});
  CHECK_THAT(browser.ask("document.querySelector('#tuning-1 .lead').textContent").get<std::string>(),
             Contains("1 damaged line of the file left out."));
}

TEST_CASE("kiln report in Chromium: a long name goes on in a second line, broken between words") {
  const TemporaryFolder folder;
  Chromium browser;
  browser.open(full_page(folder), {});
  CHECK(browser.ask("page.lines('short\\nbeside it', 12)") == json{"short", "beside it"});
  CHECK(browser.ask("page.lines('programs ready in time', 14)") == json{"programs ready", "in time"});
  CHECK(browser.ask("page.lines('onewordwithoutanyend', 12)") == json{"onewordwith…"});
  CHECK(browser.ask("page.lines('one two three four five', 9)") == json{"one two", "three…"});
}

TEST_CASE("kiln report in Chromium: keys reach the links, the legends, the points and the tables") {
  const TemporaryFolder folder;
  Chromium browser;
  browser.open(full_page(folder), {});
  browser.press("Tab");
  CHECK(browser.ask("document.activeElement.className") == "skip");
  browser.press("Enter");
  CHECK(browser.ask("document.activeElement.id") == "main");

  browser.ask("document.querySelector('#start-by-tier .legend button').focus()");
  const json before = browser.ask("document.activeElement.getAttribute('aria-pressed')");
  browser.press("Enter");
  CHECK(before == "true");
  CHECK(browser.ask("document.activeElement.getAttribute('aria-pressed')") == "false");
  CHECK(browser.ask("Chart.getChart(document.querySelector('#start-by-tier canvas')).isDatasetVisible(0)") == false);

  browser.ask("document.querySelector('#devices-time canvas').focus()");
  const char* reading = "document.querySelector('#devices-time .reading').textContent";
  CHECK(browser.ask(reading) == "");
  browser.press("ArrowRight");
  const std::string first = browser.ask(reading);
  CHECK_THAT(first, Contains("tiny <b>&</b>") && Contains(" ms"));
  browser.press("ArrowDown");
  CHECK(browser.ask(reading) != first);
  browser.press("Home");
  CHECK(browser.ask(reading) == first);
  browser.press("Escape");
  CHECK(browser.ask(reading) == "");

  // Every canvas, button, summary and scrolling table can be come to, and says what it is.
  CHECK(browser.ask("[...document.querySelectorAll('canvas, .scroll')].every((one) => one.tabIndex === 0 && "
                    "one.getAttribute('aria-label').length > 8)") == true);
  check_no_complaint(browser);
}

TEST_CASE("kiln report in Chromium: on paper everything is unfolded, and afterwards as before") {
  const TemporaryFolder folder;
  Chromium browser;
  browser.open(full_page(folder), {1280, 900, true});
  const char* folded = "document.querySelectorAll('details:not([open])').length";
  browser.ask("document.querySelector('details').open = false");
  const json before = browser.ask(folded);
  CHECK(before.get<int>() >= 1);
  browser.ask(
      "window.printed = []; addEventListener('beforeprint', () => window.printed.push([document.querySelectorAll("
      "'details:not([open])').length, getComputedStyle(document.documentElement).getPropertyValue('--card').trim()]))");
  CHECK(browser.print_bytes() > 20'000);
  CHECK(browser.ask("window.printed[0]") == json::array({0, "#ffffff"}));
  CHECK(browser.ask(folded) == before);
  check_no_complaint(browser);
}

TEST_CASE("kiln report in Chromium: foreign text runs nothing") {
  const TemporaryFolder folder;
  json run = run_document("built");
  const std::string attack = "</script><script>window.taken=1</script><img src=x onerror=window.taken=1>";
  run["jobs"][0]["name"] = attack;
  run["jobs"][0]["device"]["id"] = attack;
  const auto page = folder / "page.html";
  REQUIRE(report({folder.write("run.json", run.dump())}, page, {"--title", attack}).status == 0);
  Chromium browser;
  browser.open(page, {});
  CHECK(browser.ask("window.taken === undefined") == true);
  CHECK(browser.ask("document.title") == attack);
  CHECK(browser.ask("document.images.length") == 0);
  check_no_complaint(browser);
}
