// The validator: looks through everything that a submission hands to the command processor, as it will be read, before
// it is handed over. It trusts no encoder: it knows the bits alone.
//
// One pass over each command buffer; a submission that is in order costs no allocation.
// Thread-safety: a function without state. Ownership: borrows the scope for the call.
#pragma once

#include <kiln/status.hpp>

#include "amdgpu_pm4/safety/submission_scope.hpp"

namespace kiln::amdgpu_pm4 {

// Starts at the first command buffer and follows its chain. A refusal tells the buffer, the number of the packet in it,
// where it starts, and both sides of the mismatch:
//   "command buffer 0x8000100000, packet 3 (SET_SH_REG) at dword 17: dword 2, COMPUTE_… is 0x…, expected …"
// unsupported: a packet or register that is not on the allow-list. invalid_argument: everything else.
Status validate(const SubmissionScope& scope);

}  // namespace kiln::amdgpu_pm4
