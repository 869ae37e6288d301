// From a [[job]] as written to a RunRequest with its tensors in memory, and back: outputs to their files.
//
// Thread-safety: pure but for reading and writing the named files. Ownership: the request shares the tensors.
#pragma once

#include <kiln/config.hpp>
#include <kiln/runtime.hpp>
#include <kiln/status.hpp>

namespace kiln::host {

// Errors name the job's file, what was found and what was expected.
Result<RunRequest> make_request(const JobConfig& job);

// Writes what the job asked for: `output` of conv2d and gemm, every inout of a kernel. Files are whole or untouched.
Status store_outputs(const JobConfig& job, const RunRequest& request);

}  // namespace kiln::host
