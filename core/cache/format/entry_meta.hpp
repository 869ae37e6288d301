// EntryMeta: what people and tools may know about a stored program, in the JSON file beside it.
//
// Thread-safety: values. Ownership: values. Not authenticated and never needed: a lost or damaged one is made anew.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kiln {

struct EntryMeta {
  std::string key;    // hexadecimal digest, the same as in the file's name
  std::string label;  // for people
  // As in ProgramPurpose; empty: not known.
  std::string operation, shape, variant;
  double build_ms = 0;
  double first_dispatch_ms = 0;  // 0: not measured yet
  double gflops = 0;             // the latest measured; 0: not measured yet
  std::uint64_t times_used = 0;  // acquisitions of the program, from any tier
  std::int64_t last_used = 0;    // seconds since 1970
};

std::string encode_meta(const EntryMeta& meta);
// nullopt where the text is no JSON object; a member that is missing or of another type keeps its default.
std::optional<EntryMeta> decode_meta(std::string_view json);

}  // namespace kiln
