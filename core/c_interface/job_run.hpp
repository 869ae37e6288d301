// JobBench: measures the variants of a job's kernel in this process, on the tensors of the application.
//
// Each measurement starts from the same contents; in the end the tensors have the contents that they began with.
// Results that agree within the tolerance are of one group (VariantSamples::agreement). Thread-safety: one thread at a
// time. Ownership: borrows the job.
#pragma once

#include "c_interface/runtime.hpp"

#include <kiln/tuning.hpp>

#include <string>
#include <vector>

namespace kiln::c_interface {

class JobBench final : public VariantBench {
 public:
  JobBench(kiln_job& job, std::string device);
  ~JobBench() override;

  Result<VariantSamples> measure(std::string_view variant, std::uint32_t runs,
                                 std::chrono::nanoseconds limit) noexcept override;

 private:
  using Contents = std::vector<std::vector<std::byte>>;  // of the written tensors

  Status run(RunRequest& request, VariantSamples* samples);
  Contents written() const;
  bool agree(const Contents& one, const Contents& other) const;
  std::uint32_t group_of(Contents results);

  void restore();

  kiln_job& job_;
  const std::string device_;
  Contents before_;
  std::vector<Contents> groups_;
};

}  // namespace kiln::c_interface
