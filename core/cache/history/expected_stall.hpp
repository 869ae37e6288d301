// What a run is expected to wait for programs that lie on disk when it asks for them, by what earlier runs recorded:
// what taking them in ahead spares it, and so their order.
//
// Thread-safety: pure. Ownership: values.
#pragma once

#include "cache/format/entry_meta.hpp"

#include <span>
#include <vector>

namespace kiln {

// Milliseconds, one for each program of one device, in their order: how long the wait is (loading, and a first dispatch
// for which the driver finds its own product; of programs that were never loaded the share of their build and first
// dispatch that it is of others), times how many of the runs used the program, times how soon: one that is asked for
// two seconds into a run can still be taken in then, and counts half.
std::vector<double> expected_stalls(std::span<const EntryMeta> programs);

}  // namespace kiln
