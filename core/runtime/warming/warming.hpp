// warm_programs: takes programs into memory, from disk as a rule, and makes each one's first dispatch, over nothing, so
// that no job pays for either.
//
// Thread-safety: any thread, beside jobs. Ownership: borrows everything for the call.
#pragma once

#include <kiln/runtime.hpp>

namespace kiln {

WarmReport warm_programs(const std::vector<KeptProgram>& programs, Device& device, ProgramCache& cache,
                         const WarmRequest& request);

}  // namespace kiln
