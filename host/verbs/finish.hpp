// How verbs end: the result to where it was asked for, the exit status to main.
//
// Thread-safety: main thread only.
#pragma once

#include "exit_status.hpp"
#include "options.hpp"

#include <kiln/status.hpp>
#include <kiln_json.hpp>

#include <string>

namespace kiln::host {

// Complains, and answers the exit status that fits: 2 where what was asked for is wrong, else 1.
int complain_of(const Status& status);

// The result to standard output or --output; `status` where that worked.
int finish(const std::string& text, const Options& options, int status = exit_done);
int finish_json(const Json& json, const Options& options, int status = exit_done);

}  // namespace kiln::host
