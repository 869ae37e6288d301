// Job tables: comma-separated rows of convolution shapes, one job a row.
//
// Thread-safety: pure functions. Ownership: rows own their text.
// The first line names the columns, each of name,n,c,h,w,k,r,s,stride,pad,groups once, in any order. No quoting; spaces
// around a field are no part of it; empty lines are skipped; a carriage return before a line's end is ignored.
#pragma once

#include <kiln/config_reader.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace kiln::config {

struct JobTableRow {
  std::string name;
  Conv2dSpec spec;    // checked field by field, not yet as a whole
  ConfigPlace place;  // of the row
};

struct JobTable {
  std::vector<JobTableRow> rows;
  std::vector<ConfigProblem> problems;  // told as "column NAME: found …, expected …"
};

// file: how places name the table.
JobTable parse_job_table(std::string_view text, const std::string& file);

}  // namespace kiln::config
