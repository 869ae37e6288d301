// build_all: many programs at once, in the order asked for, sharing the work with whoever else is at it.
//
// What another thread or process is making is passed over and looked for again at the end, so that processes that start
// together on one list each build a part of it and load the rest. Thread-safety: any thread; `threads` of them work,
// the caller among them. Ownership: borrows what the requests point at, until it returns.
#pragma once

#include "cache/tiered_cache.hpp"

#include <span>
#include <vector>

namespace kiln {

// WarmableCache::get_or_build_all() of the tiered cache.
void build_all(TieredCache& cache, std::span<const ProgramRequest> requests, unsigned threads,
               const WarmableCache::OnAnswer& on_answer);

// One answer a request, in their order: get_or_build()'s.
std::vector<Result<Acquired>> build_all(TieredCache& cache, std::span<const ProgramRequest> requests,
                                        unsigned threads = 1);

}  // namespace kiln
