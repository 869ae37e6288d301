// Tiles of a product: their limits, the parts of a long sum, and the step in a workgroup's shared memory.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/device.hpp>
#include <kiln/kernel.hpp>

#include "dynamic_shaders/families/conv_shape.hpp"
#include "dynamic_shaders/kernel_writer.hpp"
#include "dynamic_shaders/limits.hpp"

namespace kiln::dynamic_shaders {

// What a workgroup does with a step of a product's two factors in shared memory: implicit/shared and gemm/shared.
//
// One factor lies there as floats, the other as vectors of four. A lane multiplies its floats, one workgroup's width
// apart, by its vectors, which lie side by side. Thread-safety: pure functions. Ownership: values; names are borrowed.

struct SharedTile {
  std::string_view floats, vectors;          // shared memory: by depth, then by place
  std::string_view float_lane, vector_lane;  // numbers of a lane within the workgroup
  std::int64_t wide = 0, quads = 0;          // floats and vectors of a lane
  std::int64_t float_lanes = 0, vector_lanes = 0;
  std::int64_t vector_row = 0;  // vectors from one depth to the next
  std::int64_t depth = 0;       // of a step

  std::int64_t float_row() const noexcept { return wide * float_lanes; }
};

// The sums of one float by one vector; `suffix` tells the depths of a loop's body apart: "v0_3", "w1_3".
std::string sum_name(std::int64_t place, std::int64_t quad);
void write_terms(Text& text, std::int64_t wide, std::int64_t quads, const std::string& suffix);

// "if (lane + 64 < 96) ", where a workgroup's round from `first` on reaches beyond `count`; else empty.
std::string within_count(std::int64_t first, std::int64_t lanes, std::int64_t count);

// Lanes of one column of the workgroup have the same places: each stores their floats for its share of the depths.
// `value` is the float of one of the lane's places at a depth of that name, which counts from the sum's beginning.
void stage_floats(KernelWriter& writer, const SharedTile& tile, std::string_view depth_name,
                  const std::function<std::string(std::int64_t place)>& value);
// Loads what was staged, and adds up a step.
void multiply_staged(KernelWriter& writer, const SharedTile& tile);

// What a workgroup's tile of a product may be, on any device and on one: implicit/*, gemm/shared.
//
// Thread-safety: pure functions. Ownership: values; names are borrowed.

struct TileExtents {
  std::string_view row_name, column_name;  // as the variant's id has them
  std::int64_t rows = 0, columns = 0;      // of a lane
  std::int64_t row_lanes = 0, column_lanes = 0;
  std::int64_t depth = 0;         // of a step
  std::int64_t shared_bytes = 0;  // of a workgroup
};

// unsupported, beginning with the family and saying what does not hold, and what would.
Status check_tile(std::string_view family, const TileExtents& tile, const DeviceInfo& device);

// What the families of products have in common: the parts of a sum too long for one pass, and the launch of tiles.
//
// Thread-safety: pure functions. Ownership: values.

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
