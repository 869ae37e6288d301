// Verification: the full output of a job against an independent reference, outside every clock.
//
// Thread-safety: pure functions. Ownership: borrows its arguments.
#pragma once

#include <kiln/runtime.hpp>

#include <optional>

namespace kiln {

struct Verdict {
  bool within = true;
  double max_rel_error = 0;
  double error_bound = 0;
};

// Fills every output tensor of the request with a pattern no kernel produces (NaN), so that what was not written is
// seen.
void poison_outputs(const RunRequest& request);

// nullopt: there is nothing to compare with (a user's kernel without expected tensors). An error: no comparison was
// possible, which is no verdict either way. REQUIRES: check_tensors(request).ok().
Result<std::optional<Verdict>> verify_outputs(const RunRequest& request);

}  // namespace kiln
