#include "simulator/wave/vector/family.hpp"

namespace kiln::simulator::KILN_VECTOR_BUILD {

VectorBuild vector_build() noexcept {
  VectorBuild build;
  build.vop1 = vop1();
  build.conversions = conversions();
  build.vop2 = vop2();
  build.vop3 = vop3();
  build.vop3_integer = vop3_integer();
  build.divide = divide();
  build.vopc = vopc();
  build.vop3p = vop3p();
  build.dot = dot();
  build.matrix = matrix();
  build.mix = mix();
  build.cross_lane = cross_lane();
  build.mask = mask();
  build.memory = lane_memory();
  build.copy_row = &vector<[](Word a) { return a; }>;
  build.lane_control_begin = &lane_control_begin;
  build.lane_control_end = &lane_control_end;
  build.sub_word_source = &sub_word_source;
  build.sub_word_result = &sub_word_result;
  return build;
}

}  // namespace kiln::simulator::KILN_VECTOR_BUILD
