// The keys of op = "kernel" whose values are tables or arrays: constants, tune, bindings, grid.
//
// Thread-safety: pure but for the draft and the report they are given. Ownership: nothing is kept.
#pragma once

#include "config/jobs/job_draft.hpp"

namespace kiln::config {

struct JobKeyEntry;

void read_constants(JobDraft& draft, const JobKeyEntry& key, const TomlMember& member, JobReport& report);
void read_tune(JobDraft& draft, const JobKeyEntry& key, const TomlMember& member, JobReport& report);
void read_bindings(JobDraft& draft, const JobKeyEntry& key, const TomlMember& member, JobReport& report);
void read_grid(JobDraft& draft, const JobKeyEntry& key, const TomlMember& member, JobReport& report);

}  // namespace kiln::config
