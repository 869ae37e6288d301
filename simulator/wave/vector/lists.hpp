// The tables of vector instructions, one for each encoding family, as one build of this folder's sources provides them.
//
// Thread-safety and ownership: constants.
#pragma once

#include "simulator/wave/lane_memory.hpp"
#include "simulator/wave/op.hpp"

namespace kiln::simulator {

// What a program needs from one build of the vector sources.
struct VectorBuild {
  SemanticsList vop1, conversions, vop2, vop3, vop3_integer, divide, vopc, vop3p, dot, matrix, mix, cross_lane, mask;
  LaneMemory memory{};
  Run copy_row = nullptr;            // vdst <- source 0, raw: the Ops that instructions are split into
  Run lane_control_begin = nullptr;  // DPP: moves source 0 into row 0 and narrows EXEC
  Run lane_control_end = nullptr;    // restores EXEC
  Run sub_word_source = nullptr;     // SDWA: selects and extends source 0 into vdst
  Run sub_word_result = nullptr;     // SDWA: puts row 0 into part of vdst
};

namespace portable {
VectorBuild vector_build() noexcept;
}
namespace avx2 {
VectorBuild vector_build() noexcept;
}

}  // namespace kiln::simulator
