// build_all: gets or builds many programs, in the given order.
//
// A program that another thread or process is building is deferred to the end. Processes that start together with one
// list therefore divide the builds among themselves and load the rest.
// Thread-safety: call from any thread; `threads` threads do the work, the caller included.
// Ownership: borrows the objects that the requests point to until it returns.
#pragma once

#include "cache/tiered_cache.hpp"

#include <span>
#include <vector>

namespace kiln {

// Implements WarmableCache::get_or_build_all() for TieredCache.
void build_all(TieredCache& cache, std::span<const ProgramRequest> requests, unsigned threads,
               const WarmableCache::OnAnswer& on_answer);

// Returns one result of get_or_build() for each request, in the order of the requests.
std::vector<Result<Acquired>> build_all(TieredCache& cache, std::span<const ProgramRequest> requests,
                                        unsigned threads = 1);

}  // namespace kiln
