// Storing what waits in pending/: each entry is read and authenticated again, and moves at one moment.
//
// Thread-safety: calls of the operating system; several processes may do it at once, and each entry is stored by one of
// them. Ownership: values.
#pragma once

#include "cache/admin/cache_root.hpp"
#include "cache/format/entry_format.hpp"
#include "cache/format/rejection.hpp"

#include <kiln/status.hpp>

#include <cstdint>
#include <string>

namespace kiln {

enum class Publication : std::uint8_t {
  invalid = 0,
  stored,
  already,   // a sound entry of that key is stored: the pending one was removed
  rejected,  // it is not sound: removed
  gone,      // somebody else took it
};

struct Published {
  Publication outcome = Publication::invalid;
  std::uint64_t bytes = 0;  // of what was stored
  Rejection reason = Rejection::none;
  std::string why;
};

// REQUIRES: root.exists().
Result<Published> publish_pending(const CacheRoot& root, const std::string& folder, const Digest& digest,
                                  const EntryKey& key);

}  // namespace kiln
