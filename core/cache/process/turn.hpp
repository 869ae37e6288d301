// Turn: who builds a program that was not found: this process, or one that is building it already.
//
// Thread-safety: take_turn() from any thread, for one key once at a time. Ownership: a turn holds its lease; its table
// outlives it. Every wait ends: with the program published, with the lease, or when patience does.
#pragma once

#include "cache/cache_counters.hpp"
#include "cache/process/process_table.hpp"

#include <kiln/digest.hpp>

#include <chrono>
#include <cstdint>
#include <functional>

namespace kiln {

enum class IfElsewhere : std::uint8_t { invalid = 0, wait, leave };

enum class Whose : std::uint8_t {
  invalid = 0,
  ours,       // build it
  published,  // nobody need build it: look again
  elsewhere,  // another process builds it, and this one was asked not to wait
};

struct Turn {
  Whose whose = Whose::ours;
  Lease lease{Lease::State::none};  // none: unshared
};

struct TurnRequest {
  const Digest& digest;
  IfElsewhere if_elsewhere = IfElsewhere::wait;
  std::chrono::nanoseconds patience{};
  // Whether the program can be found now.
  const std::function<bool()>& published;
};

// Waits are counted, and what became of them.
Turn take_turn(ProcessTable& table, const TurnRequest& request, CacheCounters& counters);

}  // namespace kiln
