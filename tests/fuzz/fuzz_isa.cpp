// Any bytes as code of both generations: instructions within the bytes, with operands within the register files and a
// text, or a fault. Nothing is carried from one instruction to the next: short inputs find as much as long ones,
// sooner.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "simulator/isa/decoder.hpp"
#include "simulator/isa/printer.hpp"

namespace {

using namespace kiln::simulator;

void require(bool holds) {
  if (!holds) std::abort();
}

void check_operand(const Operand& operand, WaveSize wave) {
  if (!operand.present()) return;
  const unsigned dwords = dwords_of(operand.type, wave);
  if (operand.is_vgpr())
    require(operand.index() + dwords <= 256 && operand.code < 512);
  else if (operand.code < operand::null)
    require(operand.code + dwords <= operand::null);
}

void check(const Instruction& instruction, const CodeTarget& target) {
  check_operand(instruction.dst, target.wave);
  check_operand(instruction.sdst, target.wave);
  check_operand(instruction.y.dst, target.wave);
  for (const Operand& source : instruction.src) check_operand(source, target.wave);
  for (const Operand& source : instruction.y.src) check_operand(source, target.wave);
  require(!instruction.has(flag::refused));
  require(!to_text(instruction, target).empty());
}

void walk(const CodeTarget& target, std::span<const std::uint32_t> words) {
  for (std::size_t at = 0; at < words.size();) {
    Instruction instruction;
    const auto fault = decode(target, words.subspan(at), 4 * at, instruction);
    if (fault) {
      require(!fault->reason.empty() && fault->address >= 4 * at);
      ++at;
      continue;
    }
    require(instruction.dwords >= 1 && instruction.dwords <= longest_instruction);
    require(at + instruction.dwords <= words.size());
    check(instruction, target);
    // Exactly its own words are enough, and one fewer is not.
    Instruction again;
    require(!decode(target, words.subspan(at, instruction.dwords), 4 * at, again));
    const auto cut = decode(target, words.subspan(at, instruction.dwords - 1u), 4 * at, again);
    require(cut && cut->kind == FaultKind::overrun);
    at += instruction.dwords;
  }
}

constexpr std::size_t most_words = 64;  // that are looked at

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::uint32_t> words(std::min(size / 4, most_words));
  if (!words.empty()) std::memcpy(words.data(), data, words.size() * 4);
  for (const Generation generation : {Generation::gfx11, Generation::gfx10_3}) {
    for (const WaveSize wave : {WaveSize::wave32, WaveSize::wave64}) walk({generation, wave}, words);
  }
  return 0;
}
