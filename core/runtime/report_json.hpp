// The report of a job as JSON: an element of `jobs` of `kiln run --json` (docs/json.md).
//
// Thread-safety: pure. Ownership: values.
#pragma once

#include "base/json.hpp"

#include <kiln/run_request.hpp>

#include <cstdint>
#include <string>

namespace kiln {

// first_result_ms: since the start of the command; 0: unknown. output: the file of the result; empty: none.
Json report_json(const RunReport& report, double first_result_ms = 0, const std::string& output = {});

// Direct FLOPs over a time, in GFLOP/s; 0 if either is unknown.
double gflops(double flops, std::uint64_t ns);

}  // namespace kiln
