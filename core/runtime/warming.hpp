// warm: takes programs from disk into memory and makes each one's first dispatch, over nothing, so that no job pays for
// either.
//
// Thread-safety: any thread, beside jobs. Ownership: borrows everything for the call.
#pragma once

#include <kiln/runtime.hpp>

namespace kiln {

WarmReport warm_device(Device& device, ProgramCache& cache, const WarmRequest& request);

}  // namespace kiln
