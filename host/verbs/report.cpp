// `kiln report`: one self-contained page from runs, benches, tuning databases, caches and traces.
#include "console.hpp"
#include "exit_status.hpp"
#include "page/page_source.hpp"
#include "report/text_table.hpp"
#include "verbs/finish.hpp"
#include "verbs/verbs.hpp"

#include <kiln/regular_file.hpp>
#include <kiln/version.hpp>

#include <unistd.h>

#include <ctime>
#include <filesystem>

namespace kiln::host {
namespace {

constexpr std::uint64_t most_page_bytes = std::uint64_t{8} << 20;
constexpr std::string_view data_mark = "KILN_DATA";

// The page without its data, beside the running command.
Result<std::string> read_page() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path file = self.parent_path().parent_path() / "share/kiln/report/page.html";
  auto page = read_whole_file(file, most_page_bytes);
  if (!page) {
    return unavailable("report: " + page.error().message +
                       "; it is built where Chart.js is installed (Debian package libjs-chart.js)");
  }
  if (page->find(data_mark) == std::string::npos) {
    return corrupt("report: file " + file.string() + ": expected a place for the data, " + std::string(data_mark) +
                   ", found none");
  }
  return page;
}

// JSON in which no "<" stands: nothing in it can end the script element that holds it.
std::string script_text(const Json& json) {
  std::string text = json_text(json);
  for (std::size_t at = text.find('<'); at != std::string::npos; at = text.find('<', at))
    text.replace(at, 1, "\\u003c");
  return text;
}

}  // namespace

int report(const Options& options) {
  if (options.subjects.empty()) {
    complain("kiln report: no file given; usage: kiln report FILE… --output page.html");
    return exit_usage;
  }
  if (!options.output && isatty(STDOUT_FILENO) == 1) {
    complain("kiln report: a page is not for a terminal: expected --output FILE, or standard output led elsewhere");
    return exit_usage;
  }
  auto html = read_page();
  if (!html) return complain_of(html.error());
  auto sources = page::read_page_sources(options.subjects);
  if (!sources) {
    complain(visible(sources.error().message));
    return exit_usage;
  }
  std::string title = "Kiln report";
  if (sources->size() == 1) title += ": " + (*sources)[0]["label"].get<std::string>();
  const Json data{{"title", options.title.empty() ? title : options.title},
                  {"made", "Made by kiln " + std::string(version) + " on " + human_date(std::time(nullptr)) + " from " +
                               counted(sources->size(), "source") + "."},
                  {"sources", std::move(*sources)}};
  html->replace(html->find(data_mark), data_mark.size(), script_text(data));
  return finish(*html, options);
}

}  // namespace kiln::host
