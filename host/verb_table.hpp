// The verbs as people see them: names, arguments, help, and the options that each takes.
//
// Thread-safety: constants. Ownership: everything is static text.
#pragma once

#include "options.hpp"

#include <span>
#include <string_view>

namespace kiln::host {

// subject: what the verb is about; subjects: any number of them; file_and_subjects: a file and any number, or nothing;
// command: the words of another command, after `--`.
enum class Argument {
  invalid = 0,
  none,
  config,
  config_or_none,
  subject,
  subject_or_none,
  subjects,
  file_and_subjects,
  command
};

struct VerbHelp {
  std::string_view name;  // as typed
  VerbAction action;
  Argument argument;
  std::string_view argument_name;  // in the usage line; empty: none
  std::string_view summary;
  std::string_view description;
  // Long names with spaces between; no others are taken.
  std::string_view common_options;
  std::string_view own_options = {};
};

// In the order of the overall help.
std::span<const VerbHelp> job_verbs() noexcept;
std::span<const VerbHelp> selector_verbs() noexcept;
std::span<const VerbHelp> cache_verbs() noexcept;
std::span<const VerbHelp> offline_verbs() noexcept;
std::span<const VerbHelp> bench_verbs() noexcept;

}  // namespace kiln::host
