// Packing: a constant's reorder into the layout that a primitive wants, large ones in pieces for all threads of the
// pool.
//
// Thread-safety: as the pool: one at a time, by a thread that is set to work alone (omp_alone.hpp). Ownership: the
// memories are the caller's.
#pragma once

#include "onednn/worker_pool.hpp"

#include <oneapi/dnnl/dnnl.hpp>

namespace kiln::cpu {

// Fills all of `to`, padding too, from `from`. Throws dnnl::error.
void pack(const dnnl::memory& from, dnnl::memory& to, WorkerPool& pool, dnnl::stream& stream);

}  // namespace kiln::cpu
