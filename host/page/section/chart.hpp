// Charts as the page's script draws them: one JSON object a chart.
//
//   bars    horizontal bars by category, beside each other or stacked
//   rows    points on lines by category, each with its spread
//   cloud   many points by category
//   plane   points and lines between two scales
//   lanes   spans of time by category
//
// A category may have two lines.
//
// Thread-safety: pure. Ownership: values.
#pragma once

#include "base/json.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::host::page {

enum class Scale { invalid = 0, linear, logarithmic };

// Places in the palette, whose first six are told apart by all kinds of colour vision. A series gets the ink it asks
// for, or the first free one where a series before it in the chart has that ink.
enum class Ink {
  invalid = 0,
  blue,
  vermillion,
  green,
  purple,
  orange,
  sky,
  grey,
  brown,
  olive,
  pink,
  indigo,
  slate,
  lime,
  maroon
};

struct Axis {
  std::string title;  // with its unit
  std::string unit;
  Scale scale = Scale::linear;
  std::optional<double> mark = std::nullopt;  // a line across, with what it means
  std::string mark_text = {};
};

struct Point {
  std::optional<double> value;  // absent: nothing there
  std::optional<double> low, high;
  std::string note;  // beside the value where it is pointed at
};

struct Series {
  std::string name;
  Ink ink = Ink::blue;
  std::vector<Point> points;  // one a category
};

enum class Stacking { invalid = 0, beside, stacked };

// REQUIRES: each series has one point a category.
Json bars_chart(const Axis& axis, const std::vector<std::string>& categories, const std::vector<Series>& series,
                Stacking stacking);
Json rows_chart(const Axis& axis, const std::vector<std::string>& categories, const std::vector<Series>& series);

struct RowPoint {
  double row = 0;  // a category, and how far beside its line
  double value = 0;
  std::string note;
};
struct Cloud {  // many points a row
  std::string name;
  Ink ink = Ink::blue;
  std::vector<RowPoint> points;
};
Json cloud_chart(const Axis& axis, const std::vector<std::string>& categories, const std::vector<Cloud>& clouds);

struct PlanePoint {
  double x = 0, y = 0;
  std::string note;
};
struct PlaneSeries {
  std::string name;
  Ink ink = Ink::blue;
  bool line = false;
  std::vector<PlanePoint> points;
};
Json plane_chart(const Axis& x, const Axis& y, const std::vector<PlaneSeries>& series);

struct LaneSpan {
  std::size_t lane = 0;
  double from = 0, to = 0;
  std::string note;
};
struct LaneSeries {
  std::string name;
  Ink ink = Ink::blue;
  std::vector<LaneSpan> spans;
};
Json lanes_chart(const Axis& axis, const std::vector<std::string>& lanes, const std::vector<LaneSeries>& series);

}  // namespace kiln::host::page
