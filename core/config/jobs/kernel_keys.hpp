// The keys of a job whose values are tables or arrays: constants, tune, bindings, images, samplers, uniforms, blocks,
// include, grid, workgroup, tolerance.
//
// Thread-safety: pure but for the draft and the report they are given. Ownership: nothing is kept.
#pragma once

#include <cstddef>

#include "config/jobs/job_draft.hpp"

namespace kiln::config {

inline constexpr std::size_t most_expression = 4096;  // characters of an expression of a grid or a shape

struct JobKeyEntry;

void read_constants(JobDraft& draft, const JobKeyEntry& key, const TomlMember& member, JobReport& report);
void read_tune(JobDraft& draft, const JobKeyEntry& key, const TomlMember& member, JobReport& report);
void read_bindings(JobDraft& draft, const JobKeyEntry& key, const TomlMember& member, JobReport& report);
// The `tensors` of a pipeline, as bindings with names.
void read_tensors(JobDraft& draft, const TomlMember& member, JobReport& report);
void read_uniforms(JobDraft& draft, const JobKeyEntry& key, const TomlMember& member, JobReport& report);
void read_blocks(JobDraft& draft, const JobKeyEntry& key, const TomlMember& member, JobReport& report);
void read_images(JobDraft& draft, const JobKeyEntry& key, const TomlMember& member, JobReport& report);
void read_samplers(JobDraft& draft, const JobKeyEntry& key, const TomlMember& member, JobReport& report);
void read_include(JobDraft& draft, const JobKeyEntry& key, const TomlMember& member, JobReport& report);
void read_workgroup(JobDraft& draft, const JobKeyEntry& key, const TomlMember& member, JobReport& report);
void read_tolerance(JobDraft& draft, const JobKeyEntry& key, const TomlMember& member, JobReport& report);
void read_grid(JobDraft& draft, const JobKeyEntry& key, const TomlMember& member, JobReport& report);

}  // namespace kiln::config
