#include "page/section/chart.hpp"
#include "page/section/sections.hpp"
#include "report/human.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

namespace kiln::host::page {
namespace {

std::string spread_text(const Spread& spread) {
  return legible(spread.median) + " (" + legible(spread.low) + " to " + legible(spread.high) + ")";
}

// A row's name where several figures of one area share theirs.
std::string row_name(const BenchFigure& figure) {
  std::string name = figure.group ? *figure.group + ": " + figure.name : figure.name;
  if (figure.device && name.find(*figure.device) == std::string::npos) name += ", " + *figure.device;
  return name;
}

std::string contest_name(const BenchFigure& figure) {
  return row_name(figure) + (figure.peer_name ? "\nbeside " + *figure.peer_name : "");  // two lines
}

Table area_table(const MeasuredArea& area) {
  Table table;
  table.columns = {{"Figure", Align::left},
                   {"Unit", Align::left},
                   {"Kiln (quartiles)", Align::right},
                   {"Peer", Align::left},
                   {"Peer's (quartiles)", Align::right},
                   {"Ratio (spread)", Align::right},
                   {"Target", Align::left},
                   {"Verified", Align::left},
                   {"Samples", Align::right}};
  for (const BenchFigure& figure : area.figures) {
    const auto& target = figure.target;
    table.rows.push_back({row_name(figure), figure.unit, spread_text(figure.kiln), figure.peer_name.value_or("–"),
                          figure.peer_name ? spread_text(figure.peer) : "–",
                          figure.peer_name ? spread_text(figure.ratio) + " ×" : "–",
                          target ? target->text + (target->met ? ": met" : ": missed") : "–",
                          !figure.verified   ? "–"
                          : *figure.verified ? "yes"
                                             : "no",
                          std::to_string(figure.kiln.samples)});
  }
  return table;
}

std::optional<Figure> ratio_figure(const MeasuredArea& area, const std::string& id) {
  std::vector<std::string> categories;
  Series better{"Kiln is better", Ink::blue, {}};
  Series worse{"the peer is better", Ink::vermillion, {}};
  Series even{"within the spread", Ink::grey, {}};
  for (const BenchFigure& figure : area.figures) {
    if (!figure.peer_name || figure.ratio.median <= 0) continue;
    const Spread& ratio = figure.ratio;
    categories.push_back(contest_name(figure));
    const Point point{ratio.median, ratio.low, ratio.high, "beside " + *figure.peer_name};
    Series& mine = ratio.low > 1 ? better : ratio.high < 1 ? worse : even;
    for (Series* series : {&better, &worse, &even}) series->points.push_back(series == &mine ? point : Point{});
  }
  if (categories.empty()) return std::nullopt;
  Figure figure;
  figure.id = id;
  figure.title = "Kiln beside its peers";
  figure.caption =
      "Each point is a ratio of the same work in the same run, with its spread; right of the line Kiln is better, "
      "whether less or more is good. The scale is logarithmic: twice as fast is as far right of the line as half as "
      "fast is left of it.";
  std::vector<Series> series;
  for (Series* one : {&better, &worse, &even}) {
    if (std::ranges::any_of(one->points, [](const Point& point) { return point.value.has_value(); })) {
      series.push_back(std::move(*one));
    }
  }
  figure.chart =
      rows_chart({"times better than the peer", "times", Scale::logarithmic, 1.0, "equal"}, categories, series);
  figure.table = area_table(area);
  return figure;
}

// What can be drawn on one logarithmic scale.
bool drawable(const BenchFigure& figure) { return figure.kiln.low > 0; }

Point point_of(const std::string& contender, const Spread& spread) {
  return {spread.median, spread.low, spread.high, contender};
}

Point kiln_point(const BenchFigure& figure) { return point_of("Kiln", figure.kiln); }

// Whether its peer's is on the same scale.
bool peer_drawable(const BenchFigure& figure) { return figure.peer_name && figure.peer.low > 0; }

Point peer_point(const BenchFigure& figure) { return point_of(*figure.peer_name, figure.peer); }

Axis axis_of(const std::string& unit, bool more) {
  return {unit + (more ? ", more is better" : ", less is better"), unit, Scale::logarithmic, {}, {}};
}

Table short_table(const std::vector<const BenchFigure*>& figures, const std::string& unit) {
  Table table;
  table.columns = {{"Figure", Align::left},
                   {"Kiln, " + unit, Align::right},
                   {"Peer", Align::left},
                   {"Peer's, " + unit, Align::right}};
  for (const BenchFigure* figure : figures) {
    table.rows.push_back({row_name(*figure), spread_text(figure->kiln), figure->peer_name.value_or("–"),
                          figure->peer_name ? spread_text(figure->peer) : "–"});
  }
  return table;
}

// One row a figure: Kiln's point and its peer's.
Figure beside_figure(const std::vector<const BenchFigure*>& figures, const std::string& id) {
  Figure figure;
  figure.id = id;
  const std::string& unit = figures.front()->unit;
  figure.title = unit == "x" ? "As ratios" : "In " + unit;
  figure.caption = "Medians, with the quartiles as bars beside them.";
  std::vector<std::string> categories;
  Series kiln{"Kiln", Ink::blue, {}};
  Series peer{"peer", Ink::orange, {}};
  for (const BenchFigure* one : figures) {
    categories.push_back(contest_name(*one));
    kiln.points.push_back(kiln_point(*one));
    peer.points.push_back(peer_drawable(*one) ? peer_point(*one) : Point{});
  }
  std::vector<Series> series{std::move(kiln)};
  if (std::ranges::any_of(peer.points, [](const Point& point) { return point.value.has_value(); })) {
    series.push_back(std::move(peer));
  }
  figure.chart = rows_chart(axis_of(unit, figures.front()->more_is_better), categories, series);
  figure.table = short_table(figures, unit);
  return figure;
}

// Whether one device has figures of several names in one group: then names are contenders, and are told apart.
bool has_named_contenders(const std::vector<const BenchFigure*>& figures) {
  std::map<std::pair<std::optional<std::string>, std::optional<std::string>>, std::set<std::string>> names;
  for (const BenchFigure* one : figures) names[{one->group, one->device}].insert(one->name);
  return std::ranges::any_of(names, [](const auto& group) { return group.second.size() > 1; });
}

// Peers that stand beside several of Kiln's figures in one group, each time with a measurement of its own.
std::set<std::string> measured_several_times(const std::vector<const BenchFigure*>& figures) {
  std::map<std::pair<std::optional<std::string>, std::string>, double> first;  // by group and peer
  std::set<std::string> several;
  for (const BenchFigure* one : figures) {
    if (!one->peer_name) continue;
    const auto [at, fresh] = first.try_emplace({one->group, *one->peer_name}, one->peer.median);
    if (!fresh && at->second != one->peer.median) several.insert(*one->peer_name);
  }
  return several;
}

std::string kiln_name(const BenchFigure& figure, bool named) {
  std::string name = "Kiln";
  if (figure.device) name += ", " + *figure.device;
  if (named) name += ": " + figure.name;
  return name;
}

// The first of Kiln's in cold colours, the first of its peers' in warm ones.
Ink contender_ink(bool kiln, std::size_t index) {
  constexpr Ink ours[] = {Ink::blue, Ink::green, Ink::sky};
  constexpr Ink theirs[] = {Ink::orange, Ink::vermillion, Ink::purple, Ink::grey};
  return kiln ? ours[std::min(index, std::size(ours) - 1)] : theirs[std::min(index, std::size(theirs) - 1)];
}

// One row a group, a layer: every contender on each device.
Figure grouped_figure(const std::vector<const BenchFigure*>& figures, const std::vector<std::string>& groups,
                      const std::string& id) {
  Figure figure;
  figure.id = id;
  const std::string& unit = figures.front()->unit;
  figure.title = "Side by side, in " + unit;
  figure.caption =
      "One row a group, as a layer or a number of threads. Medians, with the quartiles as bars beside them.";
  const bool named = has_named_contenders(figures);
  const auto several = measured_several_times(figures);
  std::vector<Series> ours;
  std::vector<Series> theirs;
  const auto put = [&](std::vector<Series>& to, const std::string& name, std::size_t group, const Point& point) {
    auto at = std::ranges::find(to, name, &Series::name);
    if (at == to.end()) {
      to.push_back({name, contender_ink(&to == &ours, to.size()), std::vector<Point>(groups.size())});
      at = to.end() - 1;
    }
    at->points[group] = point;
  };
  for (const BenchFigure* one : figures) {
    const auto group = static_cast<std::size_t>(std::ranges::find(groups, one->group.value_or("")) - groups.begin());
    const std::string mine = kiln_name(*one, named);
    put(ours, mine, group, kiln_point(*one));
    if (!peer_drawable(*one)) continue;
    const bool again = several.contains(*one->peer_name);
    put(theirs, *one->peer_name + (again ? " beside " + mine : ""), group, peer_point(*one));
  }
  ours.insert(ours.end(), std::make_move_iterator(theirs.begin()), std::make_move_iterator(theirs.end()));
  figure.chart = rows_chart(axis_of(unit, figures.front()->more_is_better), groups, ours);
  figure.table = short_table(figures, unit);
  return figure;
}

std::vector<std::string> groups_of(const std::vector<const BenchFigure*>& figures) {
  std::vector<std::string> groups;
  for (const BenchFigure* one : figures) {
    const std::string group = one->group.value_or("");
    if (std::ranges::find(groups, group) == groups.end()) groups.push_back(group);
  }
  return groups;
}

std::vector<Figure> value_figures(const MeasuredArea& area, const std::string& id) {
  std::vector<std::vector<const BenchFigure*>> sets;  // of one unit, direction and form
  for (const BenchFigure& figure : area.figures) {
    if (!drawable(figure)) continue;
    const auto same = [&](const std::vector<const BenchFigure*>& set) {
      const BenchFigure& first = *set.front();
      return first.unit == figure.unit && first.more_is_better == figure.more_is_better &&
             first.group.has_value() == figure.group.has_value();
    };
    auto at = std::ranges::find_if(sets, same);
    if (at == sets.end()) at = sets.insert(at, std::vector<const BenchFigure*>());
    at->push_back(&figure);
  }
  std::vector<Figure> figures;
  for (const auto& set : sets) {
    if (set.size() == 1 && !set.front()->peer_name) continue;  // a point alone shows no more than its row in the table
    const std::string name = id + "-" + std::to_string(figures.size() + 1);
    const auto groups = groups_of(set);
    figures.push_back(groups.size() < 2 ? beside_figure(set, name) : grouped_figure(set, groups, name));
  }
  return figures;
}

std::string id_of(std::string_view name) {
  std::string id;
  for (const char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    id += plain ? c : '-';
  }
  return id;
}

Section area_section(const MeasuredArea& area, std::string_view label, bool several, std::size_t number) {
  Section section;
  section.id = "bench-" + std::to_string(number) + "-" + id_of(area.name);
  section.title = area.title + (several ? " (" + std::string(label) + ")" : "");
  if (area.skipped && area.figures.empty()) {
    section.lead = "Not measured: " + *area.skipped;
    return section;
  }
  section.lead = counted(area.figures.size(), "figure") + ", measured in " + human_ms(area.seconds * 1e3) + ".";
  const auto met = static_cast<std::uint64_t>(
      std::ranges::count_if(area.figures, [](const BenchFigure& one) { return one.target && one.target->met; }));
  const auto targets = static_cast<std::uint64_t>(
      std::ranges::count_if(area.figures, [](const BenchFigure& one) { return one.target.has_value(); }));
  if (targets != 0) section.lead += " " + std::to_string(met) + " of " + counted(targets, "target") + " met.";
  if (area.skipped) section.lead += " Missing: " + *area.skipped + ".";
  bool table_shown = false;
  if (auto figure = ratio_figure(area, section.id + "-ratios")) {
    section.figures.push_back(std::move(*figure));
    table_shown = true;
  }
  for (Figure& figure : value_figures(area, section.id)) section.figures.push_back(std::move(figure));
  if (!table_shown)
    section.figures.push_back({section.id + "-all", "Every figure", "", std::nullopt, area_table(area)});
  return section;
}

}  // namespace

std::vector<Section> bench_sections(const Inputs& inputs) {
  std::vector<Section> sections;
  const auto benches = of_kind<BenchFile>(inputs);
  for (const auto& [bench, label] : benches) {
    for (const MeasuredArea& area : bench->areas) {
      sections.push_back(area_section(area, label, benches.size() > 1, sections.size() + 1));
    }
  }
  return sections;
}

}  // namespace kiln::host::page
