// The states in which a power cut may leave a folder, from the log of what was being done to it.
//
// Nothing but what was flushed is certain: of each other operation before the cut anything may be left that its fates
// name, in any order. All of that is too much to walk through, so it is walked through in families:
//
//   prefixes       every cut, nothing lost
//   one lost       every operation in each of its fates, with each of the next few cuts and with the last
//   late data      at every cut, all that was written since some moment in one of its fates, every name in its place
//   late names     at every cut, all names since some moment as they were before, all data in its place
//   one file       all operations on one file in every combination of fates; where those are too many, by chance
//   one program    all operations on the files of one program, by chance
//   anything       every operation, by chance
//
// Each state is given once. Thread-safety: pure. Ownership: values.
#pragma once

#include "core/cache/powercut/operations.hpp"

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace kiln::test {

struct CrashState {
  FolderImage image;
  std::size_t cut = 0;      // operations before it
  std::vector<Fate> fates;  // of those
};

struct Exploration {
  std::size_t cuts_after = 6;     // of one operation that is lost or late
  std::size_t exhaustive = 1000;  // as many combinations of one file
  std::size_t by_chance = 300;    // of one file that has more, of one program
  std::size_t anything = 800;     // by chance
  std::size_t one_of = 1;         // only each so manieth, prefixes aside
};

struct Explored {
  std::size_t combinations = 0, states = 0;            // states: that differ
  std::size_t files = 0, files_in_all_their_ways = 0;  // that were written to, made or moved
};

Explored explore(const FolderImage& before, std::span<const Operation> operations, const Exploration& exploration,
                 const std::function<void(const CrashState&)>& on_state);

// "cut after 12 of 40, moved .12-ab.tmp to 3f….bin; lost: wrote 3f….bin, 5000 bytes at 0"
std::string text_of(const CrashState& state, std::span<const Operation> operations);

}  // namespace kiln::test
