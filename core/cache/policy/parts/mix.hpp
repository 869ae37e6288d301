// mix: spreads a 64-bit hash over all its bits, for tables that take a few of them.
//
// Thread-safety and ownership: a pure function. One-to-one: distinct hashes stay distinct.
#pragma once

#include <cstdint>

namespace kiln {

constexpr std::uint64_t mix(std::uint64_t hash) noexcept {
  hash = (hash ^ (hash >> 32)) * 0x9e3779b97f4a7c15u;
  hash = (hash ^ (hash >> 29)) * 0xd6e8feb86659fd93u;
  return hash ^ (hash >> 32);
}

}  // namespace kiln
