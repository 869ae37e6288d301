// What every vector source of one build shares: the lane machinery, and the tables that the sources offer each other.
//
// Compiled once for each instruction set, see formats.hpp.
#pragma once

#include "simulator/wave/vector/extremes.hpp"
#include "simulator/wave/vector/lanes/entry.hpp"
#include "simulator/wave/vector/lists.hpp"

namespace kiln::simulator::KILN_VECTOR_BUILD {

SemanticsList vop1() noexcept;
SemanticsList conversions() noexcept;
SemanticsList vop2() noexcept;
SemanticsList vop3() noexcept;
SemanticsList vop3_integer() noexcept;
SemanticsList divide() noexcept;
SemanticsList vopc() noexcept;
SemanticsList vop3p() noexcept;
SemanticsList dot() noexcept;
SemanticsList matrix() noexcept;
SemanticsList mix() noexcept;
SemanticsList cross_lane() noexcept;
SemanticsList mask() noexcept;

LaneMemory lane_memory() noexcept;
Next lane_control_begin(Wave& wave, const Op& op);
Next lane_control_end(Wave& wave, const Op& op);
Next sub_word_source(Wave& wave, const Op& op);
Next sub_word_result(Wave& wave, const Op& op);

namespace {
[[maybe_unused]] Next nothing(Wave&, const Op&) { return Next::go; }

// What instructions take that choose a half of each source for each half of their result.
constexpr std::uint8_t packed_words = takes::packed | takes::halves;
constexpr std::uint8_t packed_floats = packed_words | takes::float_sources | takes::float_result;
}  // namespace

}  // namespace kiln::simulator::KILN_VECTOR_BUILD
