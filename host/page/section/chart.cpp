#include "page/section/chart.hpp"

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <utility>

namespace kiln::host::page {
namespace {

Json axis_json(const Axis& axis) {
  Json json{{"title", axis.title},
            {"unit", axis.unit},
            {"scale", axis.scale == Scale::logarithmic ? "logarithmic" : "linear"}};
  if (axis.mark) json["mark"] = {{"value", *axis.mark}, {"text", axis.mark_text}};
  return json;
}

constexpr std::string_view ink_words[] = {"grey",  "blue",  "vermillion", "green",  "purple", "orange", "sky",   "grey",
                                          "brown", "olive", "pink",       "indigo", "slate",  "lime",   "maroon"};
constexpr std::size_t ink_count = std::size(ink_words);

// Gives each series of a chart a colour of its own.
class Inks {
 public:
  std::string take(Ink wanted) {
    auto at = static_cast<std::size_t>(wanted);
    for (std::size_t other = 1; taken_[at] && other < ink_count; ++other) {
      if (!taken_[other]) at = other;
    }
    // Past the palette: steps of the golden angle around the colour wheel never meet.
    if (taken_[at]) return "hue-" + std::to_string(beyond_++ * 137 % 360);
    taken_[at] = true;
    return std::string(ink_words[at]);
  }

 private:
  std::array<bool, ink_count> taken_{true};  // "invalid" is no ink
  std::size_t beyond_ = 0;
};

// Six significant digits are more than a screen shows, and half the bytes.
double rounded(double value) {
  if (!std::isfinite(value)) return 0;
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return std::strtod(text, nullptr);
}

Json number_or_null(const std::optional<double>& value) { return value ? Json(rounded(*value)) : Json(nullptr); }

Json series_head(const std::string& name, std::string ink) { return {{"name", name}, {"ink", std::move(ink)}}; }

Json by_category(const char* kind, const Axis& axis, const std::vector<std::string>& categories,
                 const std::vector<Series>& series) {
  Json chart{{"kind", kind}, {"x", axis_json(axis)}, {"categories", categories}, {"series", Json::array()}};
  Inks inks;
  for (const Series& one : series) {
    Json json = series_head(one.name, inks.take(one.ink));
    json["points"] = Json::array();
    for (const Point& point : one.points) {
      Json entry = Json::array({number_or_null(point.value), number_or_null(point.low), number_or_null(point.high)});
      if (!point.note.empty()) entry.push_back(point.note);
      json["points"].push_back(std::move(entry));
    }
    chart["series"].push_back(std::move(json));
  }
  return chart;
}

}  // namespace

Json bars_chart(const Axis& axis, const std::vector<std::string>& categories, const std::vector<Series>& series,
                Stacking stacking) {
  Json chart = by_category("bars", axis, categories, series);
  chart["stacked"] = stacking == Stacking::stacked;
  return chart;
}

Json rows_chart(const Axis& axis, const std::vector<std::string>& categories, const std::vector<Series>& series) {
  return by_category("rows", axis, categories, series);
}

Json cloud_chart(const Axis& axis, const std::vector<std::string>& categories, const std::vector<Cloud>& clouds) {
  Json chart{{"kind", "cloud"}, {"x", axis_json(axis)}, {"categories", categories}, {"series", Json::array()}};
  Inks inks;
  for (const Cloud& cloud : clouds) {
    Json json = series_head(cloud.name, inks.take(cloud.ink));
    json["points"] = Json::array();
    for (const RowPoint& point : cloud.points) {
      json["points"].push_back(Json::array({rounded(point.value), rounded(point.row), point.note}));
    }
    chart["series"].push_back(std::move(json));
  }
  return chart;
}

Json plane_chart(const Axis& x, const Axis& y, const std::vector<PlaneSeries>& series) {
  Json chart{{"kind", "plane"}, {"x", axis_json(x)}, {"y", axis_json(y)}, {"series", Json::array()}};
  Inks inks;
  for (const PlaneSeries& one : series) {
    Json json = series_head(one.name, inks.take(one.ink));
    json["line"] = one.line;
    json["points"] = Json::array();
    for (const PlanePoint& point : one.points) {
      json["points"].push_back(Json::array({rounded(point.x), rounded(point.y), point.note}));
    }
    chart["series"].push_back(std::move(json));
  }
  return chart;
}

Json lanes_chart(const Axis& axis, const std::vector<std::string>& lanes, const std::vector<LaneSeries>& series) {
  Json chart{{"kind", "lanes"}, {"x", axis_json(axis)}, {"categories", lanes}, {"series", Json::array()}};
  Inks inks;
  for (const LaneSeries& one : series) {
    Json json = series_head(one.name, inks.take(one.ink));
    json["points"] = Json::array();
    for (const LaneSpan& span : one.spans) {
      json["points"].push_back(Json::array({rounded(span.from), rounded(span.to), span.lane, span.note}));
    }
    chart["series"].push_back(std::move(json));
  }
  return chart;
}

}  // namespace kiln::host::page
