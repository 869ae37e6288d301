#include "page/section/chart.hpp"
#include "page/section/sections.hpp"
#include "report/human.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace kiln::host::page {
namespace {

constexpr std::size_t most_spans_drawn = 3000;
constexpr double us_per_ms = 1e3;

// A stage of the executor by its name; another span by its category, or by its name where it has none.
std::string group_of(const TraceSpan& span) {
  if (span.category == "stage" || span.category.empty()) return span.name;
  return span.category;
}

Ink ink_of_group(const std::string& group) {
  const std::pair<const char*, Ink> known[] = {{"queue", Ink::grey},    {"build", Ink::vermillion},
                                               {"upload", Ink::orange}, {"submit", Ink::purple},
                                               {"device", Ink::blue},   {"readback", Ink::green}};
  for (const auto& [name, ink] : known) {
    if (group == name) return ink;
  }
  return Ink::sky;
}

// A job holds its stages: what is inside is what its lane was busy with.
bool is_whole_job(const TraceSpan& span) { return span.category == "job"; }

std::string name_of_lane(const TraceLane& lane) { return lane.process + ", " + lane.thread; }

struct Busy {
  std::uint64_t spans = 0;
  double us = 0;
};

// The part of the spans' union in the whole; they may overlap within a lane.
double covered(const std::vector<const TraceSpan*>& spans) {
  double sum = 0;
  double end = 0;
  for (const TraceSpan* span : spans) {  // by their beginning
    const double from = std::max(span->begin, end);
    const double to = span->begin + span->length;
    if (to > from) sum += to - from;
    end = std::max(end, to);
  }
  return sum;
}

Table lanes_table(const TraceFile& trace, const std::vector<std::string>& groups, double whole) {
  Table table;
  table.columns = {{"Lane", Align::left}, {"Jobs", Align::right}};
  for (const std::string& group : groups) table.columns.push_back({group + ", ms", Align::right});
  table.columns.push_back({"Computing", Align::right});
  for (std::size_t lane = 0; lane < trace.lanes.size(); ++lane) {
    std::map<std::string, Busy> busy;
    std::uint64_t jobs = 0;
    std::vector<const TraceSpan*> computing;
    for (const TraceSpan& span : trace.spans) {
      if (span.lane != lane) continue;
      if (is_whole_job(span)) {
        ++jobs;
        continue;
      }
      busy[group_of(span)].us += span.length;
      if (span.name == "device") computing.push_back(&span);
    }
    std::vector<std::string> row{name_of_lane(trace.lanes[lane]), std::to_string(jobs)};
    for (const std::string& group : groups)
      row.push_back(busy.contains(group) ? legible(busy[group].us / us_per_ms) : "–");
    row.push_back(computing.empty() ? "–" : percent(covered(computing), whole));
    table.rows.push_back(std::move(row));
  }
  return table;
}

Section lanes_section(const TraceFile& trace, std::string_view label, std::size_t number) {
  Section section;
  section.id = "lanes-" + std::to_string(number);
  section.title = "Pipeline lanes (" + std::string(label) + ")";
  std::vector<std::string> lanes;
  for (const TraceLane& lane : trace.lanes) lanes.push_back(name_of_lane(lane));
  std::vector<LaneSeries> series;
  std::vector<std::string> groups;
  std::size_t all = 0;
  std::size_t jobs = 0;
  double end = 0;
  for (const TraceSpan& span : trace.spans) {
    end = std::max(end, span.begin + span.length);
    if (is_whole_job(span)) {
      ++jobs;
      continue;
    }
    const std::string group = group_of(span);
    auto at = std::ranges::find(series, group, &LaneSeries::name);
    if (at == series.end()) {
      groups.push_back(group);
      series.push_back({group, ink_of_group(group), {}});
      at = series.end() - 1;
    }
    if (++all > most_spans_drawn) continue;
    const std::string note = (span.name == group ? "" : span.name + ", ") + legible(span.length / us_per_ms) + " ms";
    at->spans.push_back({span.lane, span.begin / us_per_ms, (span.begin + span.length) / us_per_ms, note});
  }
  std::erase_if(series, [](const LaneSeries& one) { return one.spans.empty(); });
  section.lead = counted(jobs, "job") + " in " + counted(lanes.size(), "lane") + ", " + human_ms(end / us_per_ms) + ".";
  Figure figure;
  figure.id = section.id + "-chart";
  figure.title = "Lanes over time";
  figure.caption =
      "One row a slot of the executor, or another thread of the trace; what overlaps from row to row ran at the same "
      "time. The file itself opens in Perfetto, where every span can be looked at.";
  if (all > most_spans_drawn) {
    figure.caption += " The first " + std::to_string(most_spans_drawn) + " of " + std::to_string(all) +
                      " spans are drawn; the table counts all.";
  }
  figure.chart = lanes_chart({"time since the first span, ms", "ms"}, lanes, series);
  figure.table = lanes_table(trace, groups, end);
  section.figures.push_back(std::move(figure));
  return section;
}

}  // namespace

std::vector<Section> lanes_sections(const Inputs& inputs) {
  std::vector<Section> sections;
  for (const auto& [trace, label] : of_kind<TraceFile>(inputs)) {
    if (trace->spans.empty()) continue;
    sections.push_back(lanes_section(*trace, label, sections.size() + 1));
  }
  return sections;
}

}  // namespace kiln::host::page
