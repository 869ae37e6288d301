// The opcode table by itself: names and numbers are unique, and no two instructions share a word.
#include "simulator/isa/opcode.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "simulator/isa/decoder.hpp"

namespace {

using namespace kiln::simulator;

std::vector<const OpcodeInfo*> lines() {
  std::vector<const OpcodeInfo*> result;
  for (unsigned index = 1; index < static_cast<unsigned>(Opcode::count); ++index) {
    result.push_back(&info(static_cast<Opcode>(index)));
  }
  return result;
}

int number_of(const OpcodeInfo& line, Generation generation) {
  return generation == Generation::gfx11 ? line.gfx11 : line.gfx10_3;
}

struct Pattern {  // the bits that say which instruction a word starts
  std::uint32_t mask = 0;
  std::uint32_t value = 0;
  std::string name;
};

struct Place {  // of a number in the first word
  std::uint32_t prefix;
  unsigned prefix_bits;
  unsigned low;
  unsigned bits;
};

std::uint32_t high_mask(unsigned bits) { return bits == 0 ? 0 : ~0u << (32 - bits); }

Pattern pattern(const Place& place, int number, const std::string& name) {
  const std::uint32_t field = ((1u << place.bits) - 1u) << place.low;
  return {high_mask(place.prefix_bits) | field,
          place.prefix << (32 - place.prefix_bits) | static_cast<std::uint32_t>(number) << place.low, name};
}

// As the instruction set documents give them.
std::vector<Pattern> patterns(const OpcodeInfo& line, Generation generation) {
  const bool gfx11 = generation == Generation::gfx11;
  const int number = number_of(line, generation);
  const std::string name(line.name);
  std::vector<Pattern> result;
  const auto add = [&](const Place& place, int value) { result.push_back(pattern(place, value, name)); };
  const Place vop3{0b110101, 6, 16, 10};
  const auto add_e64 = [&](int base) {
    if ((line.flags & flag::no_e64) == 0) add(vop3, base + number);
  };
  const auto add_flat = [&](std::uint32_t segment) {
    Pattern one = pattern({0b110111, 6, 18, 7}, number, name);
    const unsigned low = gfx11 ? 16 : 14;
    one.mask |= 3u << low;
    one.value |= segment << low;
    result.push_back(one);
  };
  switch (line.encoding) {
    case Encoding::sop2:
      add({0b10, 2, 23, 7}, number);
      break;
    case Encoding::sopk:
      add({0b1011, 4, 23, 5}, number);
      break;
    case Encoding::sop1:
      add({0b101111101, 9, 8, 8}, number);
      break;
    case Encoding::sopc:
      add({0b101111110, 9, 16, 7}, number);
      break;
    case Encoding::sopp:
      add({0b101111111, 9, 16, 7}, number);
      break;
    case Encoding::smem:
      add({0b111101, 6, 18, 8}, number);
      break;
    case Encoding::vop2:
      add({0, 1, 25, 6}, number);
      add_e64(256);
      break;
    case Encoding::vop1:
      add({0b0111111, 7, 9, 8}, number);
      add_e64(384);
      break;
    case Encoding::vopc:
      add({0b0111110, 7, 17, 8}, number);
      add_e64(0);
      break;
    case Encoding::vop3:
      add(vop3, number);
      break;
    case Encoding::vop3p:
      add({0xCC, 8, 16, 7}, number);
      break;
    case Encoding::ds:
      add({0b110110, 6, 18, 8}, number);
      break;
    case Encoding::flat:
      add_flat(0);
      break;
    case Encoding::scratch:
      add_flat(1);
      break;
    case Encoding::global:
      add_flat(2);
      break;
    case Encoding::mubuf:
      if (gfx11) {
        add({0b111000, 6, 18, 8}, number);
      } else {
        Pattern one = pattern({0b111000, 6, 18, 7}, number & 127, name);
        one.mask |= 1u << 25;
        one.value |= static_cast<std::uint32_t>(number >> 7) << 25;
        result.push_back(one);
      }
      break;
    default:
      break;
  }
  return result;
}

}  // namespace

TEST_CASE("simulator::isa::opcode: each name stands once, each line has a number") {
  std::set<std::string_view> names;
  for (const OpcodeInfo* line : lines()) {
    INFO(line->name);
    CHECK(names.insert(line->name).second);
    CHECK((line->gfx11 >= 0 || line->gfx10_3 >= 0));
    CHECK(line->encoding != Encoding::invalid);
  }
  CHECK(names.size() > 1000);
}

TEST_CASE("simulator::isa::opcode: no encoding has two opcodes of one number") {
  for (const Generation generation : {Generation::gfx11, Generation::gfx10_3}) {
    std::map<std::pair<Encoding, int>, std::string_view> taken;
    const auto take = [&taken](Encoding encoding, int number, std::string_view name) {
      const auto [at, fresh] = taken.try_emplace({encoding, number}, name);
      INFO(name << " and " << at->second);
      CHECK(fresh);
    };
    for (const OpcodeInfo* line : lines()) {
      const int number = number_of(*line, generation);
      if (number < 0) continue;
      take(line->encoding, number, line->name);
      if ((line->flags & flag::no_e64) != 0) continue;
      if (line->encoding == Encoding::vop2) take(Encoding::vop3, 256 + number, line->name);
      if (line->encoding == Encoding::vop1) take(Encoding::vop3, 384 + number, line->name);
      if (line->encoding == Encoding::vopc) take(Encoding::vop3, number, line->name);
    }
  }
}

TEST_CASE("simulator::isa::opcode: no two patterns overlap, and the decoder finds each") {
  for (const Generation generation : {Generation::gfx11, Generation::gfx10_3}) {
    std::vector<Pattern> all;
    for (const OpcodeInfo* line : lines()) {
      if (number_of(*line, generation) < 0) continue;
      for (Pattern& one : patterns(*line, generation)) all.push_back(std::move(one));
    }
    REQUIRE(all.size() > 1200);
    std::size_t overlaps = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        const std::uint32_t common = all[i].mask & all[j].mask;
        if ((all[i].value & common) != (all[j].value & common)) continue;
        UNSCOPED_INFO(all[i].name << " and " << all[j].name);
        ++overlaps;
      }
    }
    CHECK(overlaps == 0);
    for (const Pattern& one : all) {
      const std::uint32_t words[] = {one.value, 0, 0, 0, 0};
      Instruction instruction;
      const auto fault = decode({generation, WaveSize::wave32}, words, 0, instruction);
      INFO(one.name << ": " << (fault ? fault->reason : ""));
      if (!fault) {
        CHECK(info(instruction.opcode).name == one.name);
      } else {
        bool named = false;
        for (const OpcodeInfo* line : lines()) {
          if (line->name == one.name)
            named = fault->reason.rfind(std::string(mnemonic(line->opcode, generation)) + ":", 0) == 0;
        }
        CHECK(named);
      }
    }
  }
}

TEST_CASE("simulator::isa::opcode: what a line says fits together") {
  for (const OpcodeInfo* line : lines()) {
    INFO(line->name);
    const auto has = [line](std::uint32_t flags) { return (line->flags & flags) != 0; };
    if (has(flag::refused)) continue;
    CHECK(has(flag::image) == (line->encoding == Encoding::mimg));
    if (has(flag::load) && !has(flag::image)) CHECK(line->dst != DataType::none);
    if (has(flag::store) && !has(flag::image)) CHECK(line->src[1] != DataType::none);
    if (has(flag::sampler)) CHECK(has(flag::image));
    if (has(flag::mask_in)) CHECK(line->src[2] == DataType::mask);
    if (has(flag::no_operands)) CHECK((line->dst == DataType::none && line->src[0] == DataType::none));
    if (has(flag::high)) CHECK(has(flag::d16));
    if (line->encoding == Encoding::vopc) CHECK(line->dst == DataType::mask);
    if (has(flag::literal_add | flag::literal_mul)) CHECK(has(flag::no_e64));
  }
}

TEST_CASE("simulator::isa::opcode: numbers beyond an encoding's have no opcode") {
  for (const Generation generation : {Generation::gfx11, Generation::gfx10_3}) {
    CHECK(find_opcode(generation, Encoding::vop3, 1024) == Opcode::invalid);
    CHECK(find_opcode(generation, Encoding::vop3, ~0u) == Opcode::invalid);
    CHECK(find_opcode(generation, Encoding::sop2, 96) == Opcode::invalid);
  }
  CHECK(find_dual_opcode(Half::first, 16) == Opcode::invalid);
  CHECK(find_dual_opcode(Half::second, 16) == Opcode::v_add_nc_u32);
  CHECK(find_dual_opcode(Half::second, 31) == Opcode::invalid);
}
