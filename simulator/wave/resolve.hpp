// Resolver: turns a decoded instruction into the Ops that carry it out.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "simulator/fault.hpp"
#include "simulator/isa/decoder.hpp"
#include "simulator/wave/op.hpp"
#include "simulator/wave/program.hpp"
#include "simulator/wave/semantics_table.hpp"

namespace kiln::simulator {

// Resolver: turns a decoded instruction into the Ops that carry it out.
//
// Thread-safety: one thread at a time, for it adds to the pool. Ownership: borrows all that it is given.
class Resolver {
 public:
  Resolver(CodeTarget target, const SemanticsTable& semantics, ConstantPool& constants)
      : target_(target), semantics_(semantics), constants_(constants) {}

  // Appends the Ops of `decoded`, and notes there how far it reaches into the VGPRs. `open` becomes false where the
  // next instruction may not be the next one in memory. A fault: an operation or a modifier that is not simulated.
  std::optional<Fault> resolve(DecodedAt& decoded, std::uint16_t index, std::vector<Op>& ops, bool& open) const;

 private:
  std::optional<std::string> vector(const DecodedAt& at, Op base, std::vector<Op>& ops) const;
  std::optional<std::string> dual(const DecodedAt& at, Op base, std::vector<Op>& ops) const;
  std::optional<std::string> memory(const DecodedAt& at, Op base, std::vector<Op>& ops) const;
  std::optional<std::string> buffer(const DecodedAt& at, Op base, std::vector<Op>& ops) const;
  void scalar(const DecodedAt& at, Op base, std::vector<Op>& ops) const;
  // `op`: the instruction's own, complete but for its handler.
  void sub_words(const Instruction& in, const Op& base, Op op, std::vector<Op>& ops) const;
  void other_lanes(const Instruction& in, const Op& base, Op op, std::vector<Op>& ops) const;

  // Fills an Op's destinations and sources.
  void operands(Op& op, Opcode opcode, const Operand& dst, const Operand& sdst, const Operand* sources, unsigned count,
                std::uint32_t literal) const;
  void set_row(Op& op, unsigned index, std::uint16_t row) const;
  void choose_handler(Op& op, const Semantics& semantics) const;
  void source(Op& op, unsigned index, const Operand& operand, std::uint32_t literal) const;

  CodeTarget target_;
  const SemanticsTable& semantics_;
  ConstantPool& constants_;
};

// Operands that stand for a number: inline constants, literals and the limits of apertures.
//
// Thread-safety and ownership: a pure function.

// The bits that an operand stands for, in its type; nothing where it names a register or what changes as waves run.
// `literal`: the instruction's.
std::optional<std::uint64_t> constant_of(const Operand& operand, std::uint32_t literal);

}  // namespace kiln::simulator
