// JobDraft: a [[job]] in the making, and JobReport, through which its keys tell their problems.
//
// Thread-safety: none; one reading, one thread. Ownership: JobReport borrows the draft and the file of the reading.
#pragma once

#include "config/draft.hpp"

#include <cstdint>
#include <string>

namespace kiln::config {

// What kind of job it is: they share their keys in different ways. Bits, so that a key can list its forms.
enum class JobForm : std::uint8_t {
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

struct JobDraft {
  JobConfig job;
  Conv2dSpec conv;
  GemmSpec gemm;
  Pool2dSpec pool;
  AddSpec add;
  SoftmaxSpec softmax;
  ActivationSpec activation;
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

}  // namespace kiln::config
