// EntryMeta: metadata of a stored program, in the JSON file beside it, and the load order computed from it.
//
// Not authenticated and not required: a lost or damaged file is created again.
// Thread-safety: functions are pure. Ownership: values.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

struct EntryMeta {
  std::string key;  // hexadecimal digest, equal to the file name
  std::string label;
  // As in ProgramPurpose; empty if unknown.
  std::string operation, shape, variant;
  double build_ms = 0;
  double first_dispatch_ms = 0;  // longest of any process; 0: not measured
  double load_ms = 0;            // latest load from disk, with linking; 0: not measured
  double warm_dispatch_ms = 0;   // shortest first dispatch of any process; 0: not measured
  double gflops = 0;             // latest measurement of later dispatches; 0: not measured
  // Acquisitions from any tier. Memory hits between two insertions into the memory tier count once.
  std::uint64_t times_used = 0;
  std::int64_t last_used = 0;  // seconds since 1970
  std::uint64_t runs = 0;      // number of processes that used it
  // Time from opening the cache to the first request for the program. Average over processes in which the newest has
  // weight 1/4; 0: not measured.
  double first_use_ms = 0;
};

std::string encode_meta(const EntryMeta& meta);
// nullopt: the text is not a JSON object. Members that are missing or of another type keep their default.
std::optional<EntryMeta> decode_meta(std::string_view json);

// Returns the expected time, in ms, that preloading each program saves a process. One value per program of one device,
// in their order.
// Value = wait x share of processes that used the program x earliness. The wait is the load time plus the first
// dispatch with cached driver code. For programs never loaded, it is estimated from the ratio of other programs.
// Earliness is 1/2 for a first request two seconds after the start.
std::vector<double> expected_stalls(std::span<const EntryMeta> programs);

}  // namespace kiln
