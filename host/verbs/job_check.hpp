// check_jobs: what the files of a configuration's jobs show to be wrong, before anything runs.
//
// Thread-safety: pure but for the files it looks at. Ownership: values.
// Headers of .npy files and pictures are read, sources are read whole, no element is. A file that a job before writes
// is judged by what that job leaves in it. No driver is opened.
#pragma once

#include <kiln/config.hpp>
#include <kiln/config_reader.hpp>

#include <vector>

namespace kiln::host {

// Every problem of every job, each at the place of its key. What is missing for several rows of a table is told once.
std::vector<ConfigProblem> check_jobs(const std::vector<JobConfig>& jobs);

// The same for the pipelines, with their shapes. Their inputs must be there already: no job writes them first.
std::vector<ConfigProblem> check_pipelines(const Config& config);

}  // namespace kiln::host
