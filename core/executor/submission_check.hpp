// check: whether a Submission fits its plan, before anything of it is used.
//
// Thread-safety: pure. A message names the plan, the object and both sides of a mismatch.
#pragma once

#include <kiln/executor.hpp>

namespace kiln::executor {

// invalid_argument where the caller's values do not fit; internal where the plan contradicts itself.
enum class Use : unsigned char { invalid = 0, submit, record };
Status check(const Submission& submission, Use use);

}  // namespace kiln::executor
