#include "page/section/sections.hpp"

#include "report/human.hpp"

#include <cmath>
#include <cstdio>

namespace kiln::host::page {
namespace {

constexpr const char* narrow_space = "\u202f";  // within a number, where lines do not break

void put(std::vector<Section>& to, std::optional<Section> section) {
  if (section) to.push_back(std::move(*section));
}

void put(std::vector<Section>& to, std::vector<Section> sections) {
  for (Section& section : sections) to.push_back(std::move(section));
}

}  // namespace

std::string legible(double value) {
  if (value == 0) return "0";
  char text[48];
  if (std::abs(value) < 0.01) {
    std::snprintf(text, sizeof text, "%.2g", value);
    return text;
  }
  if (std::abs(value) < 1e4) return short_number(value);
  std::snprintf(text, sizeof text, "%.0f", value);
  std::string grouped = text;
  const std::size_t first = grouped.front() == '-' ? 1 : 0;
  for (std::size_t end = grouped.size(); end > first + 3; end -= 3) grouped.insert(end - 3, narrow_space);
  return grouped;
}

std::string with_unit(double value, std::string_view unit) { return legible(value) + " " + std::string(unit); }

std::string percent(double part, double whole) {
  if (whole <= 0) return "–";
  const double share = 100 * part / whole;
  char text[32];
  std::snprintf(text, sizeof text, share > 0 && share < 10 ? "%.1f %%" : "%.0f %%", share);
  return text;
}

Section sources_section(const Inputs& inputs) {
  Section section;
  section.id = "sources";
  section.title = "Sources";
  section.lead = "What this page was made from. Nothing of it is fetched from anywhere: the page is one file.";
  Figure figure;
  figure.id = "files";
  figure.title = "Files";
  figure.table.columns = {
      {"File", Align::left}, {"What it is", Align::left}, {"Size", Align::right}, {"SHA-256", Align::left}};
  for (const PageInput& input : inputs) {
    figure.table.rows.push_back({input.name, std::string(kind_words(input)),
                                 input.digest.empty() ? "–" : human_size(input.bytes),
                                 input.digest.empty() ? "–" : input.digest.substr(0, 16) + "…"});
  }
  section.figures.push_back(std::move(figure));
  return section;
}

std::vector<Section> all_sections(const Inputs& inputs) {
  std::vector<Section> sections;
  put(sections, overview_section(inputs));
  put(sections, bench_sections(inputs));
  put(sections, start_section(inputs));
  put(sections, cache_section(inputs));
  put(sections, devices_section(inputs));
  put(sections, roofline_section(inputs));
  put(sections, tuning_sections(inputs));
  put(sections, lanes_sections(inputs));
  put(sections, sources_section(inputs));
  return sections;
}

}  // namespace kiln::host::page
