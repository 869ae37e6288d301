// What a workgroup does with a step of a product's two factors in shared memory: implicit/shared and gemm/shared.
//
// One factor lies there as floats, the other as vectors of four. A lane multiplies its floats, one workgroup's width
// apart, by its vectors, which lie side by side. Thread-safety: pure functions. Ownership: values; names are borrowed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "dynamic_shaders/dialect/kernel_writer.hpp"

namespace kiln::dynamic_shaders {

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

}  // namespace kiln::dynamic_shaders
