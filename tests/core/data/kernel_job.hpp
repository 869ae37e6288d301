// Jobs with a kernel of the user, for tests of what becomes of their keys.
// Thread-safety: any thread. Ownership: values.
#pragma once

#include <kiln/data.hpp>

#include <utility>

#include "core/data/scratch_folder.hpp"

namespace kiln::test {

inline JobConfig kernel_job(const ScratchFolder& folder, KernelBindingConfig binding) {
  JobConfig job;
  job.op = "kernel";
  job.source = "k.comp";
  job.text = "void main() {}";
  job.base = folder.path();
  job.bindings = {std::move(binding)};
  return job;
}

inline Status failure_of(const JobConfig& job) {
  const auto request = data::make_request(job);
  return request ? Status() : request.error();
}

}  // namespace kiln::test
