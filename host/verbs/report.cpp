// `kiln report`: one self-contained page from runs, benches, tuning databases, caches and traces.
#include "exit_status.hpp"
#include "page/input/input.hpp"
#include "page/render/html_page.hpp"
#include "page/section/sections.hpp"
#include "report/human.hpp"
#include "verbs/finish.hpp"
#include "verbs/verbs.hpp"

#include <kiln/version.hpp>

#include <unistd.h>

#include <ctime>

namespace kiln::host {
namespace {

std::string title_of(const Options& options, const page::Inputs& inputs) {
  if (!options.title.empty()) return options.title;
  if (inputs.size() == 1) return "Kiln report: " + inputs.front().label;
  return "Kiln report";
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
  const auto assets = page::read_assets(page::assets_folder());
  if (!assets) return complain_of(assets.error());
  const auto inputs = page::read_page_inputs(options.subjects);
  if (!inputs) return complain_of(inputs.error());
  page::Page page;
  page.title = title_of(options, *inputs);
  page.made = "Made by kiln " + std::string(version) + " on " + human_date(std::time(nullptr)) + " from " +
              counted(inputs->size(), "source") + ".";
  page.sections = page::all_sections(*inputs);
  return finish(page::html_page(page, *assets), options);
}

}  // namespace kiln::host
