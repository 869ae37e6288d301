// EntryMeta: what people and tools may know about a stored program, in the JSON file beside it.
//
// Thread-safety: values. Ownership: values. Not authenticated and never needed: a lost or damaged one is made anew.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

struct EntryMeta {
  std::string key;    // hexadecimal digest, the same as in the file's name
  std::string label;  // for people
  // As in ProgramPurpose; empty: not known.
  std::string operation, shape, variant;
  double build_ms = 0;
  double first_dispatch_ms = 0;  // the longest of any process; 0: not measured yet
  double load_ms = 0;            // the latest from disk, linking included; 0: not measured yet
  double warm_dispatch_ms = 0;   // the shortest first dispatch of any process; 0: not measured yet
  double gflops = 0;             // of later runs, the latest measured; 0: not measured yet
  // Acquisitions of the program, from any tier. A memory hit writes little: those between two programs that the process
  // took in count once.
  std::uint64_t times_used = 0;
  std::int64_t last_used = 0;  // seconds since 1970
  std::uint64_t runs = 0;      // processes that used it
  // From a process' opening of the cache until it first asked for the program, over processes, the newest with a
  // quarter of the weight; 0: not measured yet.
  double first_use_ms = 0;
};

std::string encode_meta(const EntryMeta& meta);
// nullopt where the text is no JSON object; a member that is missing or of another type keeps its default.
std::optional<EntryMeta> decode_meta(std::string_view json);

// What a run is expected to wait for programs that lie on disk when it asks for them, by what earlier runs recorded:
// what taking them in ahead spares it, and so their order.
//
// Thread-safety: pure. Ownership: values.

// Milliseconds, one for each program of one device, in their order: how long the wait is (loading, and a first dispatch
// for which the driver finds its own product; of programs that were never loaded the share of their build and first
// dispatch that it is of others), times how many of the runs used the program, times how soon: one that is asked for
// two seconds into a run can still be taken in then, and counts half.
std::vector<double> expected_stalls(std::span<const EntryMeta> programs);

}  // namespace kiln
