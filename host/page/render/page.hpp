// Page: what a report shows, before it is HTML: sections of figures, each a chart and the same as a table.
//
// Thread-safety: values. Ownership: values. Every text is plain: the writer of HTML escapes it.
#pragma once

#include "base/json.hpp"
#include "report/text_table.hpp"

#include <optional>
#include <string>
#include <vector>

namespace kiln::host::page {

struct Table {
  std::vector<TextTable::Column> columns;
  std::vector<std::vector<std::string>> rows;  // one cell a column; the first names the row
};

struct Figure {
  std::string id;  // of letters, digits and '-', one of its kind in the page
  std::string title;
  std::string caption;        // what is to be seen, and how it was counted
  std::optional<Json> chart;  // as section/chart.hpp makes it; absent: the table stands alone
  Table table;
};

struct Tile {  // one figure in large type
  std::string label, value, note;
};

struct Section {
  std::string id, title, lead;
  std::vector<Tile> tiles;
  std::vector<Figure> figures;
};

struct Page {
  std::string title, made;
  std::vector<Section> sections;
};

}  // namespace kiln::host::page
