// WordSource: instruction words of a chosen encoding and opcode number with random operands and modifiers: most of them
// such as programs contain, some that no generation takes. What the encodings' fields are is written here once more,
// apart from the decoder.
//
// Thread-safety: none. Ownership: values.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "simulator/isa/opcode.hpp"

namespace kiln::test {

class WordSource {
 public:
  WordSource(simulator::Generation generation, unsigned seed) : generation_(generation), random_(seed) {}

  // How many numbers an encoding has room for; 0 where the generation lacks it.
  unsigned numbers(simulator::Encoding encoding) const;
  // Two to five words: what follows the instruction's own may be a literal or serve nothing.
  std::vector<std::uint32_t> make(simulator::Encoding encoding, unsigned number);

 private:
  using Words = std::vector<std::uint32_t>;

  bool gfx11() const { return generation_ == simulator::Generation::gfx11; }
  std::uint32_t below(std::uint32_t bound) { return static_cast<std::uint32_t>(random_() % bound); }
  bool rarely() { return below(12) == 0; }
  std::uint32_t sometimes(unsigned bits) { return rarely() ? below(1u << bits) : 0; }
  std::uint32_t null_code() const { return gfx11() ? 124 : 125; }

  std::uint32_t vgpr() { return rarely() ? below(256) : 4 * below(48); }
  std::uint32_t scalar_register();
  std::uint32_t scalar_source();
  std::uint32_t source();  // 9 bits

  Words scalar(simulator::Encoding encoding, unsigned number);
  Words vector(simulator::Encoding encoding, unsigned number);
  Words vop3(simulator::Encoding encoding, unsigned number);
  Words dual(unsigned number);
  Words smem(unsigned number);
  Words ds(unsigned number);
  Words flat(unsigned segment, unsigned number);
  Words buffer(simulator::Encoding encoding, unsigned number);
  Words image(unsigned number);
  std::uint32_t dpp16();

  simulator::Generation generation_;
  std::mt19937 random_;
};

}  // namespace kiln::test
