// An explanation of a miss as JSON: a member of `misses` in docs/json.md, for the command and the C interface.
//
// Thread-safety: pure. Ownership: values.
#pragma once

#include <kiln/cache_admin.hpp>
#include <kiln_json.hpp>

namespace kiln {

Json explanation_json(const MissExplanation& miss);

}  // namespace kiln
