// TextTable: rows of words as aligned columns for a person; numbers to the right.
//
// Thread-safety: none. Ownership: values.
#pragma once

#include <string>
#include <vector>

namespace kiln::host {

enum class Align { invalid = 0, left, right };

class TextTable {
 public:
  struct Column {
    std::string title;
    Align align = Align::left;
  };

  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}
  // Cells are made visible(): a row stays one line. REQUIRES: one cell a column.
  void add(std::vector<std::string> row);
  std::string text() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// "12.3": significant for a person over six orders of magnitude.
std::string short_number(double value);

}  // namespace kiln::host
