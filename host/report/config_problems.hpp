// config_problems_json: what is wrong with a configuration, for machines.
//
// Thread-safety: pure function.
#pragma once

#include "base/json.hpp"

#include <kiln/config_reader.hpp>

#include <span>

namespace kiln::host {

// [{"file", "line", "column", "message"}]; line and column are null for what stands in no file, and `file` then says
// what it is about, or is null too.
Json config_problems_json(std::span<const ConfigProblem> problems);

}  // namespace kiln::host
