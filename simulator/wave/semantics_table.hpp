// SemanticsTable: what every opcode does, as far as it is simulated; with the vector build for this processor.
//
// Thread-safety: constant once made. Ownership: owns nothing but the table.
#pragma once

#include <cstddef>
#include <vector>

#include "simulator/isa/opcode.hpp"
#include "simulator/wave/op.hpp"
#include "simulator/wave/vector/lists.hpp"
#include "simulator/wave/vector_choice.hpp"

namespace kiln::simulator {

class SemanticsTable {
 public:
  explicit SemanticsTable(VectorChoice choice);

  // Null: not simulated.
  const Semantics* find(Opcode opcode) const noexcept {
    const Semantics& entry = by_opcode_[static_cast<std::size_t>(opcode)];
    return entry.run == nullptr ? nullptr : &entry;
  }
  const VectorBuild& vector() const noexcept { return vector_; }

 private:
  VectorBuild vector_;
  std::vector<Semantics> by_opcode_;
};

}  // namespace kiln::simulator
