// Verification: compares the complete output of a job with an independent reference, outside the measured time.
//
// Thread-safety: pure. Ownership: borrows its arguments.
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

// Adds the comparison of one output with this name and shape.
void add_comparison(Verdict& verdict, const reference::Comparison& comparison, const Shape& shape,
                    const std::string& name);

// Whether the outputs were judged: a comparison that is not possible says nothing of the device.
inline bool was_judged(const Status& compared) noexcept {
  return compared.ok() || compared.code == StatusCode::wrong_result;
}

// "63 of 64 elements are wrong; worst in dst.npy at [1]: found 0, expected 1, allowed error 0.000122"
std::string wrong_text(const Verdict& verdict);

// invalid_argument: `verify` is set, but a user kernel has no reference.
Status check_verifiable(const RunRequest& request);

// Fills every output tensor with NaN, which no kernel produces, so that unwritten elements are detected.
void poison_outputs(const RunRequest& request);

// The reference result of a layer. It is expensive to compute.
struct KeptReference {
  reference::Expected expected;
};

// Computes the reference of the current inputs and constants. REQUIRES: check_tensors(request).ok(); not a user kernel.
Result<std::shared_ptr<const KeptReference>> keep_reference(const RunRequest& request);

// nullopt: no reference (a user kernel without expected tensors). Error: the comparison was not possible. REQUIRES:
// check_tensors(request).ok().
Result<std::optional<Verdict>> verify_outputs(const RunRequest& request);

}  // namespace kiln
