// warm_programs: takes programs into memory, from disk as a rule, and makes each one's first dispatch, over nothing, so
// that no job pays for either.
//
// What is built is dispatched some builds later: by then the driver has written the code that it made into its own
// cache. On an empty cache processes that warm one list share the work: each builds a part of it. Thread-safety: any
// thread, beside jobs; as many threads work as are asked for, the caller's among them. Ownership: borrows everything
// for the call.
#pragma once

#include <kiln/runtime.hpp>

#include <chrono>

namespace kiln {

// told: what is so far, after each program that was acquired and at the end; one call at a time, on the thread that
// works on it. patience: for one first dispatch, in which a driver may generate code; a device that takes longer hangs,
// which is that program's failure, `timeout`, and the end of the warming. trace: told the first dispatches.
constexpr std::chrono::nanoseconds most_for_first_dispatch = std::chrono::seconds(60);
WarmReport warm_programs(const std::vector<KeptProgram>& programs, Device& device, ProgramCache& cache,
                         const WarmRequest& request, unsigned threads = 1,
                         const std::function<void(const WarmReport&)>& told = {},
                         std::chrono::nanoseconds patience = most_for_first_dispatch, TraceSink* trace = nullptr);

// Threads for who has nothing better to do with the processor than to build.
unsigned building_threads() noexcept;

}  // namespace kiln
