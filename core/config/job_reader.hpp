// [[job]] in a configuration: tables of jobs, and the jobs themselves.
//
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

#include "config/reader.hpp"

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

// read_jobs: the [[job]] tables of a file into Config::jobs, tables of jobs expanded.
//
// Thread-safety: none; one reading, one thread. Ownership: nothing is kept.

// A job with a problem is left out of Config::jobs.
void read_jobs(Draft& draft, const TomlMember& jobs, const FileContext& file);

// The [[pipeline]] tables into Config::pipelines. One with a problem is left out.
void read_pipelines(Draft& draft, const TomlMember& pipelines, const FileContext& file);

}  // namespace kiln::config
