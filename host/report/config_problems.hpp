// The problems and warnings of a configuration, for people and for machines.
//
// Thread-safety: any thread.
#pragma once

#include "base/json.hpp"

#include <kiln/config_reader.hpp>

#include <span>

namespace kiln::host {

// [{"file", "line", "column", "message"}]; line and column are null for what stands in no file, and `file` then says
// what it is about, or is null too.
Json config_problems_json(std::span<const ConfigProblem> problems);

// Prints the warnings, where the configured log level shows them, and the problems to standard error. Returns whether
// the configuration is valid.
bool report_reading(const ConfigReading& reading);

}  // namespace kiln::host
