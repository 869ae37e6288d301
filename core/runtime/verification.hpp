// Verification: the full output of a job against an independent reference, outside every clock.
//
// Thread-safety: pure functions. Ownership: borrows its arguments.
#pragma once

#include "reference/compare.hpp"

#include <kiln/run_request.hpp>

#include <memory>
#include <optional>
#include <string>

namespace kiln {

struct Verdict {
  bool within = true;
  double max_rel_error = 0;
  double error_bound = 0;
  std::uint64_t elements = 0;
  std::uint64_t wrong = 0;
  WorstElement worst{};
};

// "63 of 64 elements are wrong; worst in dst.npy at [1]: found 0, expected 1, allowed error 0.000122"
std::string wrong_text(const Verdict& verdict);

// Whether `verify` has something to compare with: invalid_argument where a user's kernel has no reference at all.
Status check_verifiable(const RunRequest& request);

// Fills every output tensor of the request with a pattern no kernel produces (NaN), so that what was not written is
// seen.
void poison_outputs(const RunRequest& request);

// The reference of a conv2d or gemm, which takes longer to compute than the op to run.
struct KeptReference {
  reference::Expected expected;
};

// Of what the request's inputs and constants hold now. REQUIRES: check_tensors(request).ok(); no user's kernel.
Result<std::shared_ptr<const KeptReference>> keep_reference(const RunRequest& request);

// nullopt: there is nothing to compare with (a user's kernel without expected tensors). An error: no comparison was
// possible, which is no verdict either way. REQUIRES: check_tensors(request).ok().
Result<std::optional<Verdict>> verify_outputs(const RunRequest& request);

}  // namespace kiln
