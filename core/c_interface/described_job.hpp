// DescribedJob: a [[job]] or [[pipeline]] in TOML, whose tensors an application gives by name.
//
// Thread-safety: one thread at a time. Ownership: a value; the tensors are in kiln_job::tensors, in the order of
// `tensors()`.
//
//   auto described = DescribedJob::read(text, folder);
//   for (const DescribedTensor& tensor : described->tensors()) …  // give each to the job
//   if (Status status = described->complete(job); !status.ok()) return status;
#pragma once

#include <kiln/config.hpp>
#include <kiln/data.hpp>
#include <kiln/status.hpp>

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

struct kiln_job;

namespace kiln::c_interface {

// "memory:NAME" in the text.
struct DescribedTensor {
  std::string name;
  Access access = Access::invalid;
  bool constant = false;  // weights and bias: copied once
};

class DescribedJob {
 public:
  // folder: where relative file names start. invalid_argument: the error has all problems, a line each.
  static Result<DescribedJob> read(std::string_view text, const std::filesystem::path& folder);

  std::span<const DescribedTensor> tensors() const noexcept { return tensors_; }
  const JobConfig& job() const noexcept;                          // of a pipeline: what it shares with a job
  bool has_reference() const noexcept { return has_reference_; }  // for verification without other runs

  // Puts request or pipeline into the job. invalid_argument: a tensor is missing or does not fit. Adds notes for the
  // log.
  Status complete(kiln_job& job, std::vector<std::string>& notes);
  // Forgets constants that were made from the tensor.
  void replaced(const std::string& name);
  // The types and shapes of the tensors, as far as they are known.
  Result<std::vector<data::TensorForm>> forms(const kiln_job& job);

 private:
  using Written = std::variant<JobConfig, PipelineConfig>;
  explicit DescribedJob(Written written) : written_(std::move(written)) {}

  Status find_tensors();
  Status add(const std::string& source, Access access, bool constant = false);
  Status add_binding(const KernelBindingConfig& binding);
  Status add_steps(const std::vector<PipelineStepConfig>& steps);
  void give(const kiln_job& job);

  Written written_;
  std::vector<DescribedTensor> tensors_;
  bool has_reference_ = false;
  data::Memory memory_;  // holds tensors during a call only
};

}  // namespace kiln::c_interface
