// SemanticsTable: what every simulated opcode does, from the tables of the scalar, memory and vector units.
#pragma once

#include <cstddef>
#include <vector>

#include "simulator/isa/opcode.hpp"
#include "simulator/wave/op.hpp"

namespace kiln::simulator {

// One f32 multiply-add of a run of them, which one Op carries out: place[0] is the first step, place[1] the first of
// the Ops that the steps stand for, `extra` how many. No step of a run reads or writes another's result, so steps that
// share a source stand side by side as their second. Where the row of each source and of the result begins, in bytes
// from the wave's first row. Small, for thousands of them should stay in the first cache beside what they work on.
// Thread-safety and ownership: values; the block owns them.
struct MultiplyAdd {
  std::uint16_t source[3] = {};
  std::uint16_t result = 0;
  std::uint16_t op = 0;       // which of the run's Ops it stands for
  std::uint8_t together = 1;  // steps from this one on, 4 at most, that share their second source and `is_scalar`
  bool is_scalar = false;     // source 0 is a scalar register: its index
};

// The handler of a run of MultiplyAdd; null: the build has none.
namespace portable {
Run multiply_adds() noexcept;
}
namespace avx2 {
Run multiply_adds() noexcept;
}
namespace avx512 {
Run multiply_adds() noexcept;
}

// SemanticsTable: what every opcode does, as far as it is simulated; with the vector build for this processor.
//
// Thread-safety: constant once made. Ownership: owns nothing but the table.
class SemanticsTable {
 public:
  static const SemanticsTable& of(VectorChoice choice);  // one for each choice, never destroyed

  // Null: not simulated.
  const Semantics* find(Opcode opcode) const noexcept {
    const Semantics& entry = by_opcode_[static_cast<std::size_t>(opcode)];
    return entry.run == nullptr ? nullptr : &entry;
  }
  const VectorBuild& vector() const noexcept { return vector_; }
  Run multiply_adds() const noexcept { return multiply_adds_; }
  // Whether an Op may be a step of such a run.
  bool is_multiply_add(const Op& op) const noexcept;

 private:
  explicit SemanticsTable(VectorChoice choice);
  template <VectorChoice choice>
  static const SemanticsTable& kept();

  VectorBuild vector_;
  Run multiply_adds_ = nullptr;
  std::vector<Semantics> by_opcode_;
};

}  // namespace kiln::simulator

namespace kiln::simulator::memory_unit {

// The tables of memory instructions. Those of the flat family and of buffers stand without their prefixes
// (global_load_b32 is load_b32 of global()). Thread-safety and ownership: constants.

SemanticsList flat() noexcept;
SemanticsList global() noexcept;
SemanticsList by_thread_id() noexcept;  // global ones, without an address in a VGPR
SemanticsList scratch() noexcept;
SemanticsList local() noexcept;        // DS
SemanticsList local_lanes() noexcept;  // DS: between lanes, without memory
SemanticsList buffer() noexcept;
SemanticsList formatted_buffer() noexcept;
SemanticsList typed_buffer() noexcept;  // MTBUF
Next buffer_status(Wave& wave, const Op& op);
SemanticsList image() noexcept;  // without a sampler
SemanticsList image_detail() noexcept;
SemanticsList image_ray() noexcept;
const Semantics& image_sample() noexcept;  // of every sample and gather
SemanticsList nothing() noexcept;          // cache maintenance with full names

}  // namespace kiln::simulator::memory_unit

namespace kiln::simulator::scalar_unit {

// The tables of scalar instructions. Thread-safety and ownership: constants.

SemanticsList sop2() noexcept;
SemanticsList sop1() noexcept;
SemanticsList compare() noexcept;  // SOPC, and the compares of SOPK
SemanticsList sopk() noexcept;
SemanticsList control() noexcept;  // SOPP, and what changes the program counter
SemanticsList smem() noexcept;

}  // namespace kiln::simulator::scalar_unit
