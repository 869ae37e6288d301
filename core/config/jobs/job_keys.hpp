// The one table of the keys of a [[job]]: name, the forms that use and need it, rule, meaning and how it is stored.
//
// Thread-safety: constant data. Ownership: static.
#pragma once

#include "config/jobs/job_draft.hpp"

#include <cstdint>
#include <span>
#include <string_view>

namespace kiln::config {

struct JobKeyEntry {
  std::string_view name;
  std::uint8_t used_by;           // a set of JobForm
  std::uint8_t required_by;       // likewise
  ValueRule rule;                 // kind invalid: `read` judges the value
  std::string_view default_text;  // in TOML's syntax; empty: none
  std::string_view help;
  Status (*set)(JobDraft& draft, const ConfigValue& value);  // REQUIRES: a value that the rule has checked
  void (*read)(JobDraft& draft, const JobKeyEntry& key, const TomlMember& member, JobReport& report);
};

std::span<const JobKeyEntry> job_key_table() noexcept;
const JobKeyEntry* find_job_key(std::string_view name) noexcept;
bool has_form(std::uint8_t forms, JobForm form) noexcept;

// One entry an operation of a job: its name in `op`, and its spec of a draft.
struct JobOperation {
  std::string_view name;
  JobForm form;
  KernelSpec (*spec)(const JobDraft& draft);  // null: its spec is not made from keys alone
};
std::span<const JobOperation> job_operations() noexcept;

// The rules that a table's columns share with the keys of the same names.
ValueRule extent_rule() noexcept;   // sizes, strides, groups: from 1
ValueRule padding_rule() noexcept;  // from 0

}  // namespace kiln::config
