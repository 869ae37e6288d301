// Undefined: which bits of a wave's registers nobody has written, and whether such a bit reaches a store.
//
// A register beside each register says bit by bit what is undefined. Moves, logic, shifts, sums and selections carry
// single bits; other arithmetic makes a result undefined as a whole where a bit that it reads is. Nothing is reported
// before a store or an atomic to memory takes such a bit from an active lane, as its data or in its address: compilers
// compute with undefined bits that nothing keeps. Loads of memory and scratch are defined; LDS is followed byte by
// byte. What selects lanes or branches counts as defined.
//
// Thread-safety: one thread, as its wave. Ownership: the bits of LDS belong to the group.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "simulator/wave/check/effects.hpp"
#include "simulator/wave/op.hpp"
#include "simulator/wave/program.hpp"
#include "simulator/wave/wave.hpp"

namespace kiln::simulator {

class Undefined {
 public:
  // All is undefined but the first `scalars` scalar registers, EXEC, and the first `vectors` VGPRs. `lds`: a mask for
  // each byte of LDS.
  void start(const Wave& wave, std::uint32_t vgprs, unsigned scalars, unsigned vectors, std::vector<std::uint8_t>& lds);

  // True: nothing that the instruction reads or writes is undefined, so that step() would change nothing. DS
  // instructions read LDS too.
  bool defined(const Effects& effects) const {
    return !effects.touched.meets(dirty_) && !(effects.scc && scc_) && effects.reach != Reach::local;
  }
  // Before `at` runs: why its store must not; else takes in what it writes.
  std::optional<std::string> step(Wave& wave, const DecodedAt& at, const Effects& effects, std::span<const Op> ops);

 private:
  using Word = std::uint32_t;
  using Lanes = std::array<Word, 32>;

  Word* row(unsigned vgpr, unsigned half) {
    return bits_.data() + (static_cast<std::size_t>(vgpr) << row_shift_) + half * 32U;
  }
  // 32 lanes of one dword of a source.
  Lanes source(const Operand& operand, unsigned dword, unsigned half);
  void set_scalar(unsigned index, Word bits) {
    scalar_[index] = bits;
    if (RegisterSet::scalars + index < RegisterSet::count) dirty_.set(RegisterSet::scalars + index, bits != 0);
  }
  // After bits of its row changed.
  void note(unsigned vgpr);
  static Lanes values(Wave& wave, const Operand& operand, const Instruction& in, unsigned half);
  void put(Wave& wave, unsigned vgpr, unsigned half, const Lanes& lanes);
  void define(Wave& wave, const Effects& effects);
  static std::uint64_t bits_read(const Wave& wave, const Instruction& in);
  void scalar(const Wave& wave, const Instruction& in);
  void vector(Wave& wave, const Instruction& in, const Operand& dst, const Operand* sources);
  void packed(Wave& wave, const Instruction& in, unsigned half);
  void compare(Wave& wave, const Instruction& in);
  bool across_lanes(Wave& wave, const Instruction& in);
  bool exchange(Wave& wave, const DecodedAt& at);
  void local(Wave& wave, const Instruction& in, const Effects& effects, const Op& op);
  std::optional<std::string> stores(Wave& wave, const Instruction& in, const Op& op);

  // An exchange of two halves that has begun: their undefined bits before it, and where it goes on.
  struct Exchange {
    unsigned a = 0, b = 0;  // 2 * VGPR, + 1 for its high half
    std::uint64_t next = 0;
    bool last = false;
    std::array<Lanes, 2> bits_of_a{}, bits_of_b{};
  };

  std::vector<Word> bits_;
  Exchange exchange_;
  RegisterSet dirty_;  // of which some lane's bits are undefined
  std::array<Word, 256> scalar_{};
  bool scc_ = false;
  unsigned row_shift_ = 5;
  std::vector<std::uint8_t>* lds_ = nullptr;
};

}  // namespace kiln::simulator
