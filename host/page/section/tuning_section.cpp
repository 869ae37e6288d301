#include "page/section/chart.hpp"
#include "page/section/sections.hpp"
#include "report/human.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <tuple>

namespace kiln::host::page {
namespace {

constexpr std::size_t most_shapes_drawn = 40;
constexpr std::size_t most_rejected_shown = 50;

struct ShapeTuning {
  std::string_view spec;
  std::vector<const TuningRecord*> timed;  // the fastest first
  std::vector<const TuningRecord*> rejected;
  const TuningRecord* winner = nullptr;    // nullptr: none was chosen yet
  const TuningRecord* baseline = nullptr;  // the plain kernel

  double best() const { return timed.front()->median(); }
};

using Tunings = std::vector<ShapeTuning>;

std::string_view family_of(std::string_view variant) { return variant.substr(0, variant.find(':')); }

std::map<std::string_view, Tunings> by_device(const TuningFile& file) {
  std::map<std::string_view, std::map<std::string_view, ShapeTuning>> devices;
  for (const TuningRecord& record : file.records) {
    ShapeTuning& shape = devices[record.device][record.spec];
    shape.spec = record.spec;
    if (record.verdict == "rejected" || record.wall_ms.empty()) {
      shape.rejected.push_back(&record);
      continue;
    }
    shape.timed.push_back(&record);
    if (record.verdict == "winner") shape.winner = &record;
    if (record.variant.ends_with("/plain")) shape.baseline = &record;
  }
  std::map<std::string_view, Tunings> sorted;
  for (auto& [device, shapes] : devices) {
    for (auto& [spec, shape] : shapes) {
      std::ranges::stable_sort(shape.timed, {}, &TuningRecord::median);
      sorted[device].push_back(std::move(shape));
    }
  }
  return sorted;
}

// Spreads a row's points about its line, the same way each time.
double beside_line(std::size_t index) {
  constexpr double golden = 0.618033988749895;
  const double turn = static_cast<double>(index) * golden;
  return (turn - static_cast<double>(static_cast<std::uint64_t>(turn)) - 0.5) * 0.62;
}

Cloud& cloud_of(std::vector<Cloud>& clouds, std::string_view name) {
  auto at = std::ranges::find(clouds, name, &Cloud::name);
  if (at == clouds.end()) at = clouds.insert(at, {std::string(name), Ink::vermillion, {}});
  return *at;
}

Json landscape_chart(const std::vector<const ShapeTuning*>& shapes) {
  std::vector<std::string> categories;
  std::vector<Cloud> families;
  Cloud winners{"winner", Ink::blue, {}};
  for (const ShapeTuning* shape : shapes) {
    const auto row = static_cast<double>(categories.size());
    categories.push_back(shape_words(shape->spec));
    for (std::size_t i = 0; i < shape->timed.size(); ++i) {
      const TuningRecord& record = *shape->timed[i];
      const double ratio = record.median() / shape->best();
      const std::string note = record.variant + ": " + legible(record.median()) + " ms";
      const bool won = shape->winner == &record;
      Cloud& cloud = won ? winners : cloud_of(families, family_of(record.variant));
      cloud.points.push_back({won ? row : row + beside_line(i), ratio, note});
    }
  }
  families.push_back(std::move(winners));  // drawn over the others
  return cloud_chart({"times the fastest variant's time", "times", Scale::logarithmic, 1.0, "the fastest"}, categories,
                     families);
}

Table landscape_table(const Tunings& shapes) {
  Table table;
  table.columns = {{"Shape", Align::left},
                   {"Variants timed", Align::right},
                   {"Rejected", Align::right},
                   {"Winner", Align::left},
                   {"Winner, ms", Align::right},
                   {"GFLOP/s", Align::right},
                   {"Plain kernel, ms", Align::right},
                   {"Slowest, ms", Align::right}};
  for (const ShapeTuning& shape : shapes) {
    const double flops = flops_of(shape.spec);
    const double ms = shape.winner == nullptr ? 0 : shape.winner->median();
    table.rows.push_back({shape_words(shape.spec), std::to_string(shape.timed.size()),
                          std::to_string(shape.rejected.size()), shape.winner == nullptr ? "–" : shape.winner->variant,
                          ms > 0 ? legible(ms) : "–", ms > 0 && flops > 0 ? legible(flops / ms / 1e6) : "–",
                          shape.baseline == nullptr ? "–" : legible(shape.baseline->median()),
                          shape.timed.empty() ? "–" : legible(shape.timed.back()->median())});
  }
  return table;
}

std::vector<std::string_view> parameters_of(std::string_view variant) {
  std::vector<std::string_view> parameters;
  const std::size_t colon = variant.find(':');
  if (colon == std::string_view::npos) return parameters;
  variant.remove_prefix(colon + 1);
  while (!variant.empty()) {
    const std::string_view one = variant.substr(0, variant.find(','));
    parameters.push_back(one);
    variant.remove_prefix(std::min(one.size() + 1, variant.size()));
  }
  return parameters;
}

// "x=8" before "x=16".
struct ByValue {
  bool operator()(const std::string& a, const std::string& b) const {
    const auto parts = [](const std::string& text) {
      const std::size_t equals = text.find('=') + 1;  // 0: there is none
      return std::tuple(text.substr(0, equals), std::strtol(text.c_str() + equals, nullptr, 10), text);
    };
    return parts(a) < parts(b);
  }
};
using ParameterCosts = std::map<std::string, std::vector<double>, ByValue>;

// By "key=value": of each shape, how much longer the best variant that has it takes than the best of all.
ParameterCosts costs_of_parameters(const Tunings& shapes) {
  ParameterCosts costs;
  for (const ShapeTuning& shape : shapes) {
    std::map<std::string, double> best;
    for (const TuningRecord* record : shape.timed) {  // the fastest first
      const std::string family(family_of(record->variant));
      for (const std::string_view parameter : parameters_of(record->variant)) {
        best.emplace(family + ": " + std::string(parameter), record->median());
      }
    }
    for (const auto& [parameter, ms] : best) costs[parameter].push_back(ms / shape.best());
  }
  std::map<std::string, int> values;
  const auto key_of = [](const std::string& parameter) { return parameter.substr(0, parameter.find('=')); };
  for (const auto& [parameter, ratios] : costs) ++values[key_of(parameter)];
  std::erase_if(costs, [&](const auto& one) { return values[key_of(one.first)] < 2; });  // nothing to choose
  for (auto& [parameter, ratios] : costs) std::ranges::sort(ratios);
  return costs;
}

std::optional<Figure> parameters_figure(const Tunings& shapes, const std::string& id) {
  const auto costs = costs_of_parameters(shapes);
  if (costs.empty()) return std::nullopt;
  Figure figure;
  figure.id = id;
  figure.title = "What a parameter's value costs";
  figure.caption =
      "Of each shape, the fastest variant with that value against the fastest of all: at 1 the value loses nothing. "
      "The point is the median over the shapes, the bar reaches from the least to the most.";
  figure.table.columns = {{"Parameter", Align::left},
                          {"Median, times", Align::right},
                          {"Least to most", Align::right},
                          {"Shapes", Align::right}};
  std::vector<std::string> categories;
  Series series{"fastest with this value", Ink::blue, {}};
  for (const auto& [parameter, ratios] : costs) {
    const double median = ratios[ratios.size() / 2];
    categories.push_back(parameter);
    series.points.push_back({median, ratios.front(), ratios.back(), counted(ratios.size(), "shape")});
    figure.table.rows.push_back({parameter, legible(median), legible(ratios.front()) + " to " + legible(ratios.back()),
                                 std::to_string(ratios.size())});
  }
  figure.chart = rows_chart({"times the fastest variant's time", "times", Scale::logarithmic, 1.0, "loses nothing"},
                            categories, {series});
  return figure;
}

std::optional<Figure> rejected_figure(const Tunings& shapes, const std::string& id) {
  Figure figure;
  figure.id = id;
  figure.title = "Rejected variants";
  figure.table.columns = {{"Shape", Align::left}, {"Variant", Align::left}, {"Why", Align::left}};
  std::size_t all = 0;
  for (const ShapeTuning& shape : shapes) {
    for (const TuningRecord* record : shape.rejected) {
      if (++all > most_rejected_shown) continue;
      figure.table.rows.push_back(
          {shape_words(shape.spec), record->variant, record->why.empty() ? "no time" : record->why});
    }
  }
  if (all == 0) return std::nullopt;
  figure.caption = "What hung, crashed or computed wrongly serves nobody.";
  if (all > most_rejected_shown) {
    figure.caption += " The first " + std::to_string(most_rejected_shown) + " of " + std::to_string(all) + ".";
  }
  return figure;
}

Section tuning_section(std::string_view device, const Tunings& shapes, std::string_view label, std::size_t number) {
  Section section;
  section.id = "tuning-" + std::to_string(number);
  section.title = "Tuning of device " + std::string(device.substr(0, 8)) + " (" + std::string(label) + ")";
  std::vector<const ShapeTuning*> drawn;
  std::size_t timed = 0;
  std::size_t rejected = 0;
  for (const ShapeTuning& shape : shapes) {
    timed += shape.timed.size();
    rejected += shape.rejected.size();
    if (!shape.timed.empty()) drawn.push_back(&shape);
  }
  section.lead = counted(shapes.size(), "shape") + ", " + counted(timed, "variant") +
                 " timed, each after its whole output was "
                 "compared with the reference; " +
                 std::to_string(rejected) + " rejected.";
  Figure figure;
  figure.id = section.id + "-landscape";
  figure.title = "Landscape";
  figure.caption =
      "One row a shape, one point a variant: how many times longer it takes than the fastest of its row. Winners were "
      "timed in rounds with their rivals, the others a few runs each in the search: a winner need not stand at 1.";
  if (drawn.size() > most_shapes_drawn) {
    figure.caption += " The first " + std::to_string(most_shapes_drawn) + " of " + std::to_string(drawn.size()) +
                      " shapes are drawn.";
    drawn.resize(most_shapes_drawn);
  }
  figure.table = landscape_table(shapes);
  if (!drawn.empty()) figure.chart = landscape_chart(drawn);
  section.figures.push_back(std::move(figure));
  if (auto parameters = parameters_figure(shapes, section.id + "-parameters"))
    section.figures.push_back(std::move(*parameters));
  if (auto bad = rejected_figure(shapes, section.id + "-rejected")) section.figures.push_back(std::move(*bad));
  return section;
}

}  // namespace

std::vector<Section> tuning_sections(const Inputs& inputs) {
  std::vector<Section> sections;
  for (const auto& [file, label] : of_kind<TuningFile>(inputs)) {
    for (const auto& [device, shapes] : by_device(*file)) {
      sections.push_back(tuning_section(device, shapes, label, sections.size() + 1));
      if (file->damaged != 0) {
        sections.back().lead += " " + counted(file->damaged, "damaged line") + " of the file left out.";
      }
    }
  }
  return sections;
}

}  // namespace kiln::host::page
