// Cut: a box of a conv2d's output that one thread computes, and the ways to share the whole output out in such boxes.
//
// Thread-safety: values and pure functions.
#pragma once

#include "onednn/layouts/range.hpp"

#include <kiln/kernel.hpp>

#include <string>
#include <vector>

namespace kiln::cpu {

struct Cut {
  Range images, rows, columns, channels;  // of the output; channels are whole groups where there are several
};

Cut whole(const Conv2dSpec& spec);

struct Cuts {
  std::string name;  // "4x2 tiles by rows and channels": for people, and no two ways share one
  std::vector<Cut> tiles;
};

// few: one way for each direction, for layouts that are seldom the best. many: with more and smaller tiles too.
enum class Choices : std::uint8_t { invalid = 0, few, many };

// Likely best first, each of two tiles at least; empty for one thread, or where the output is too small. More tiles
// than threads stand first, where there is enough work: a thread that is held up leaves some to the others.
std::vector<Cuts> cuts_of(const Conv2dSpec& spec, int threads, Choices choices);

}  // namespace kiln::cpu
