// What the families of products have in common: the parts of a sum too long for one pass, and the launch of tiles.
//
// Thread-safety: pure functions. Ownership: values.
#pragma once

#include <kiln/kernel.hpp>

#include <cstdint>
#include <vector>

#include "dynamic_shaders/families/conv_shape.hpp"
#include "dynamic_shaders/limits.hpp"

namespace kiln::dynamic_shaders {

struct SumPart {
  std::int64_t first = 0, last = 0;  // rounds of the loop that adds up, half open
  bool begins = false;               // from nothing; else from what the pass before left in the output
  bool ends = false;                 // adds the bias, applies the activation
};

// One for each pass that a loop of so many rounds needs (limits.hpp).
inline std::vector<SumPart> parts_of(std::int64_t rounds) {
  const std::int64_t passes = passes_for(rounds, 1);
  std::vector<SumPart> parts;
  for (std::int64_t i = 0; i < passes; ++i) {
    parts.push_back({i * rounds / passes, (i + 1) * rounds / passes, i == 0, i + 1 == passes});
  }
  return parts;
}

// Workgroups of a launch in which each computes a tile of so many rows and columns.
constexpr Triple tile_grid(const GemmSpec& spec, std::int64_t rows, std::int64_t columns) noexcept {
  return {divide_up(spec.n, columns), divide_up(spec.m, rows), 1};
}

}  // namespace kiln::dynamic_shaders
