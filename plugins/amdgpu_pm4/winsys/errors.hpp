// Error numbers of the kernel interface as typed Statuses.
//
// Thread-safety: a pure function. Ownership: values.
#pragma once

#include <kiln/status.hpp>

#include <string_view>

namespace kiln::amdgpu_pm4 {

// The Status of a call that answered `error`, a negative (or positive) error number; ok for 0. winsys.hpp says which is
// which. `doing` names the call and its object.
Status status_of(int error, std::string_view doing);

}  // namespace kiln::amdgpu_pm4
