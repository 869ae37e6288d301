#include "config/job_keys.hpp"
#include "config/job_reader.hpp"

#include <kiln/config_text.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <set>

namespace kiln::config {
namespace {

constexpr std::string_view expected_header = "name,n,c,h,w,k,r,s,stride,pad,groups";
constexpr std::array<std::string_view, 11> columns{"name", "n", "c",      "h",   "w",     "k",
                                                   "r",    "s", "stride", "pad", "groups"};
constexpr std::size_t most_rows = 10'000;

struct Field {
  std::string_view text;
  std::uint32_t column = 1;
};

std::vector<Field> split(std::string_view line) {
  std::vector<Field> fields;
  for (std::size_t start = 0; start <= line.size();) {
    const std::size_t end = std::min(line.find(',', start), line.size());
    std::size_t first = start, last = end;
    while (first < last && (line[first] == ' ' || line[first] == '\t')) ++first;
    while (last > first && (line[last - 1] == ' ' || line[last - 1] == '\t')) --last;
    fields.push_back({line.substr(first, last - first), static_cast<std::uint32_t>(first + 1)});
    start = end + 1;
  }
  return fields;
}

class TableParser {
 public:
  explicit TableParser(const std::string& file) : file_(file) {}

  JobTable parse(std::string_view text) {
    if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // a byte order mark
    while (!text.empty()) {
      ++line_;
      const std::size_t end = std::min(text.find('\n'), text.size());
      std::string_view line = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (line.find_first_not_of(" \t") == std::string_view::npos) continue;
      if (order_.empty()) {
        if (!read_header(line)) return std::move(table_);
      } else if (table_.rows.size() == most_rows) {
        problem(1, "found too many rows, expected at most " + std::to_string(most_rows));
        return std::move(table_);
      } else {
        read_row(line);
      }
    }
    line_ = std::max(line_, 1u);
    if (order_.empty()) {
      problem(1, "found an empty table, expected the header " + std::string(expected_header));
    } else if (table_.rows.empty() && table_.problems.empty()) {
      problem(1, "found a header without rows, expected one row for each job");
    }
    return std::move(table_);
  }

 private:
  void problem(std::uint32_t column, std::string message) {
    table_.problems.push_back({{file_, line_, column}, std::move(message)});
  }

  // False where the rows cannot be read for want of a column.
  bool read_header(std::string_view line) {
    for (const Field& field : split(line)) {
      const auto known = std::find(columns.begin(), columns.end(), field.text);
      if (known == columns.end()) {
        problem(field.column, "unknown column " + toml_text(field.text) +
                                  "; nearest: " + std::string(nearest_word(field.text, columns)));
        order_.emplace_back();
        continue;
      }
      if (std::find(order_.begin(), order_.end(), *known) != order_.end()) {
        problem(field.column, "column " + std::string(*known) + ": found twice, expected once");
      }
      order_.push_back(*known);
    }
    std::string missing;
    for (const std::string_view column : columns) {
      if (std::find(order_.begin(), order_.end(), column) != order_.end()) continue;
      missing += (missing.empty() ? "" : ", ") + std::string(column);
    }
    if (!missing.empty()) {
      problem(1, "missing columns: " + missing + "; expected the header " + std::string(expected_header));
    }
    return table_.problems.empty();
  }

  void read_row(std::string_view line) {
    const std::vector<Field> fields = split(line);
    if (fields.size() != order_.size()) {
      return problem(1, "found " + std::to_string(fields.size()) + " fields, expected " +
                            std::to_string(order_.size()) + ": " + std::string(expected_header));
    }
    const std::size_t problems_before = table_.problems.size();
    JobTableRow row;
    row.place = {file_, line_, 1};
    for (std::size_t i = 0; i < fields.size(); ++i) read_field(order_[i], fields[i], row);
    if (table_.problems.size() == problems_before) table_.rows.push_back(std::move(row));
  }

  void read_field(std::string_view column, const Field& field, JobTableRow& row) {
    if (column == "name") {
      row.name = field.text;
      if (field.text.empty()) problem(field.column, "column name: found an empty field, expected a text");
      return;
    }
    const ValueRule rule = column == "pad" ? padding_rule() : extent_rule();
    std::int64_t value = 0;
    const char* const end_of_field = field.text.data() + field.text.size();
    const auto [end, error] = std::from_chars(field.text.data(), end_of_field, value);
    if (error != std::errc() || end != end_of_field || static_cast<double>(value) < rule.least ||
        static_cast<double>(value) > rule.most) {
      return problem(field.column, "column " + std::string(column) + ": found " +
                                       (field.text.empty() ? "an empty field" : toml_text(field.text)) + ", expected " +
                                       expected_text(rule));
    }
    Conv2dSpec& spec = row.spec;
    if (column == "stride") spec.stride_y = spec.stride_x = value;
    if (column == "pad") spec.pad_y = spec.pad_x = value;
    constexpr std::pair<std::string_view, std::int64_t Conv2dSpec::*> plain[] = {
        {"n", &Conv2dSpec::n}, {"c", &Conv2dSpec::c}, {"h", &Conv2dSpec::h}, {"w", &Conv2dSpec::w},
        {"k", &Conv2dSpec::k}, {"r", &Conv2dSpec::r}, {"s", &Conv2dSpec::s}, {"groups", &Conv2dSpec::groups}};
    for (const auto& [name, member] : plain) {
      if (name == column) spec.*member = value;
    }
  }

  const std::string& file_;
  std::uint32_t line_ = 0;
  std::vector<std::string_view> order_;  // the columns as the header has them
  JobTable table_;
};

}  // namespace

JobTable parse_job_table(std::string_view text, const std::string& file) { return TableParser(file).parse(text); }

}  // namespace kiln::config
