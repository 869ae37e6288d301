// warm_programs: takes programs into memory, from disk as a rule, and makes each one's first dispatch, over nothing, so
// that no job pays for either.
//
// What is built is dispatched some builds later: by then the driver has written the code that it made into its own
// cache. On an empty cache processes that warm one list share the work: each builds a part of it. Thread-safety: any
// thread, beside jobs; as many threads work as are asked for, the caller's among them. Ownership: borrows everything
// for the call.
#pragma once

#include <kiln/runtime.hpp>

namespace kiln {

// told: what is so far, after each program that was acquired and at the end; one call at a time, on the thread that
// works on it.
WarmReport warm_programs(const std::vector<KeptProgram>& programs, Device& device, ProgramCache& cache,
                         const WarmRequest& request, unsigned threads = 1,
                         const std::function<void(const WarmReport&)>& told = {});

// Threads for who has nothing better to do with the processor than to build.
unsigned building_threads() noexcept;

}  // namespace kiln
