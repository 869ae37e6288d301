// JobDraft: a [[job]] in the making, and JobReport, through which its keys tell their problems.
//
// Thread-safety: none; one reading, one thread. Ownership: JobReport borrows the draft and the file of the reading.
#pragma once

#include "config/reader.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace kiln::config {

// What kind of job it is: they share their keys in different ways. Bits, so that a key can list its forms.
enum class JobForm : std::uint32_t {
  invalid = 0,
  conv2d = 1,
  gemm = 2,
  kernel = 4,
  table = 8,
  pool2d = 16,
  add = 32,
  softmax = 64,
  activation = 128
};
using JobForms = std::uint32_t;  // a set of them

struct JobDraft {
  JobConfig job;
  Conv2dSpec conv;
  GemmSpec gemm;
  Pool2dSpec pool;
  Extents shape{};  // of the layers that have one
  Activation activation = Activation::none;
  std::string table;
  TextPosition table_at;
};

class JobReport {
 public:
  enum class Within : std::uint8_t { invalid = 0, job, pipeline };
  JobReport(Draft& draft, const FileContext& file, std::string label, Within within = Within::job)
      : draft_(draft), file_(file), label_(std::move(label)), within_(within) {}

  // In a pipeline, outputs are tensors, whose form may follow from another place.
  bool in_pipeline() const noexcept { return within_ == Within::pipeline; }

  void problem(TextPosition at, const std::string& message) {
    ++problems_;
    draft_.problem(file_.place(at), label_ + ": " + message);
  }
  std::size_t problems() const noexcept { return problems_; }
  const FileContext& file() const noexcept { return file_; }

 private:
  Draft& draft_;
  const FileContext& file_;
  std::string label_;  // "job "layer"", or "job 2" where it has no name
  Within within_;
  std::size_t problems_ = 0;
};

// The keys of a job whose values are tables or arrays: constants, tune, bindings, images, samplers, uniforms, blocks,
// include, grid, workgroup, tolerance.
//
// Thread-safety: pure but for the draft and the report they are given. Ownership: nothing is kept.

// Whether the floating-point type has the integer: f16, f32 or f64.
bool has_integer(DType dtype, std::int64_t integer);

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
// A `grid` that is a table: a tensor of counts, as a binding.
void read_indirect_grid(JobDraft& draft, const TomlMember& member, JobReport& report);

// The one table of the keys of a [[job]]: name, the forms that use and need it, rule, meaning and how it is stored.
//
// Thread-safety: constant data. Ownership: static.

struct JobKeyEntry {
  std::string_view name;
  JobForms used_by;
  JobForms required_by;
  ValueRule rule;                 // kind invalid: `read` judges the value
  std::string_view default_text;  // in TOML's syntax; empty: none
  std::string_view help;
  Status (*set)(JobDraft& draft, const ConfigValue& value);  // REQUIRES: a value that the rule has checked
  void (*read)(JobDraft& draft, const JobKeyEntry& key, const TomlMember& member, JobReport& report);
};

std::span<const JobKeyEntry> job_key_table() noexcept;
const JobKeyEntry* find_job_key(std::string_view name) noexcept;
bool has_form(JobForms forms, JobForm form) noexcept;
// For messages: the key that has the meaning of this name in other tools, or else the nearest spelling. invalid: of any
// form.
std::string nearest_job_key(std::string_view name, JobForm form);

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
