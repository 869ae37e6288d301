// read_jobs: the [[job]] tables of a file into Config::jobs, tables of jobs expanded.
//
// Thread-safety: none; one reading, one thread. Ownership: nothing is kept.
#pragma once

#include "config/draft.hpp"

namespace kiln::config {

// A job with a problem is left out of Config::jobs.
void read_jobs(Draft& draft, const TomlMember& jobs, const FileContext& file);

// The [[pipeline]] tables into Config::pipelines. One with a problem is left out.
void read_pipelines(Draft& draft, const TomlMember& pipelines, const FileContext& file);

}  // namespace kiln::config
