// Turning the exception being handled into a typed Status: dnnl::error and the standard ones never leave this module.
//
// Thread-safety: any thread.
#pragma once

#include <kiln/status.hpp>

#include <string_view>

namespace kiln::cpu {

// REQUIRES: called within a catch clause. `what` describes the object: the canonical text of a spec, as a rule.
Status current_failure(std::string_view what);

}  // namespace kiln::cpu
