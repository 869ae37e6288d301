// The builds of the vector instructions give the same bits: every operation on random and on special operands, under
// several modes; and runs of multiply-adds, which some builds do several at a time. Builds that the processor cannot
// run are one with the next that it can.
#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

#include "tests/simulator/wave/bench.hpp"

namespace kiln::simulator::test {
namespace {

constexpr unsigned first_source = 8, source_step = 8, destination = 40, used_vgprs = 48;
constexpr unsigned mask_source = 20, mask_destination = 24, lane_selector = 28;

std::uint32_t random_word(std::mt19937& generator) {
  constexpr std::uint32_t special[] = {0U,          0x80000000U, 0x3F800000U, 0xBF800000U, 0x7F800000U, 0xFF800000U,
                                       0x7FC00000U, 0x7F800001U, 0xFFC12345U, 1U,          0x807FFFFFU, 0x00800000U,
                                       0x7F7FFFFFU, 0x4F000000U, 0xCF000000U, 0x3C003C00U, 0x7C017E00U, 0x00018001U,
                                       0xFFFFFFFFU, 0x7FFFFFFFU, 0x477FF000U, 0x33000000U, 0x38800000U, 0x7FF00000U};
  const std::uint32_t choice = generator();
  if (choice % 4 == 0) return special[choice / 4 % std::size(special)];
  if (choice % 4 == 1) return (generator() & 0x807FFFFFU) | (100U + generator() % 56U) << 23U;
  return generator();
}

bool is_vector(const OpcodeInfo& opcode) {
  const bool vector = opcode.encoding == Encoding::vop1 || opcode.encoding == Encoding::vop2 ||
                      opcode.encoding == Encoding::vopc || opcode.encoding == Encoding::vop3 ||
                      opcode.encoding == Encoding::vop3p;
  return vector && opcode.gfx11 >= 0 && (opcode.flags & flag::refused) == 0;
}

// The e64 or VOP3P form, every source a VGPR where it may be one.
std::vector<std::uint32_t> encoded(const OpcodeInfo& opcode, const std::string& name) {
  unsigned sources[3] = {0, 0, 0};
  for (unsigned s = 0; s < 3; ++s) {
    if (opcode.src[s] == DataType::none) continue;
    sources[s] = opcode.src[s] == DataType::mask ? mask_source : encode::v(first_source + s * source_step);
  }
  if ((opcode.flags & flag::scalar_rest) != 0) sources[1] = sources[2] = lane_selector;
  if (opcode.src[2] == DataType::none) sources[2] = 0;
  if ((opcode.flags & flag::scalar_src0) != 0) sources[0] = lane_selector + 1;
  if (opcode.encoding == Encoding::vop3p)
    return encode::vop3p(name.c_str(), destination, sources[0], sources[1], sources[2]);
  if ((opcode.flags & flag::no_e64) != 0) {
    if (opcode.encoding == Encoding::vop1) {
      const unsigned dst = (opcode.flags & flag::scalar_dst) != 0 ? mask_destination : destination;
      return {encode::vop1(name.c_str(), dst, sources[0])};
    }
    std::vector<std::uint32_t> words{encode::vop2(name.c_str(), destination, sources[0], sources[1])};
    if ((opcode.flags & (flag::literal_add | flag::literal_mul)) != 0) words.push_back(0x3FC01234U);
    return words;
  }
  if ((opcode.flags & flag::carry_out) != 0) {
    return encode::vop3sd(name.c_str(), destination, mask_destination, sources[0], sources[1], sources[2]);
  }
  unsigned dst = destination;
  if (opcode.dst == DataType::mask || (opcode.flags & flag::scalar_dst) != 0) dst = mask_destination;
  if ((opcode.flags & flag::exec_out) != 0) dst = operand::exec_lo;
  return encode::vop3(name.c_str(), dst, sources[0], sources[1], sources[2]);
}

struct Outcome {
  std::vector<std::uint32_t> registers;
  std::string fault;
};

Outcome outcome(VectorChoice choice, const std::vector<std::uint32_t>& words, std::uint32_t mode, WaveSize wave,
                unsigned seed) {
  Bench bench({Generation::gfx11, wave, choice});
  std::mt19937 generator(seed);
  for (unsigned r = 0; r < used_vgprs; ++r) {
    for (unsigned lane = 0; lane < bench.wave.lanes(); ++lane) bench.vgpr(r, lane) = random_word(generator);
  }
  for (unsigned s = 0; s < 100; ++s) bench.sgpr(s) = generator();
  bench.set_sgpr64(operand::vcc_lo, generator());
  bench.sgpr(operand::m0) = 1;
  if (seed % 2 != 0) bench.set_exec(generator());
  bench.set_mode(mode);
  const std::optional<Fault> fault = bench.run(words);
  Outcome result;
  if (fault) result.fault = describe(*fault);
  for (unsigned r = 0; r < used_vgprs; ++r) {
    for (unsigned lane = 0; lane < bench.wave.lanes(); ++lane) result.registers.push_back(bench.vgpr(r, lane));
  }
  for (unsigned s = 0; s < 128; ++s) result.registers.push_back(bench.sgpr(s));
  return result;
}

}  // namespace

TEST_CASE("simulator vectors: all builds agree bit for bit", "[simulator][wave]") {
  constexpr std::uint32_t keep = 0x3F0U, flush32 = 0x3C0U, flush_all = 0x100U, upwards = 0x3F5U, to_zero = 0x3FFU;
  unsigned checked = 0;
  for (unsigned i = 1; i < static_cast<unsigned>(Opcode::count); ++i) {
    const OpcodeInfo& opcode = info(static_cast<Opcode>(i));
    if (!is_vector(opcode)) continue;
    const std::string name(opcode.name);
    const std::vector<std::uint32_t> words = encoded(opcode, name);
    for (const std::uint32_t mode : {keep, flush32, flush_all, upwards, to_zero}) {
      const WaveSize wave = mode == flush32 ? WaveSize::wave64 : WaveSize::wave32;
      INFO(name << " under mode " << mode);
      const Outcome portable = outcome(VectorChoice::portable, words, mode, wave, i);
      for (const VectorChoice choice : {VectorChoice::best, VectorChoice::no_avx512}) {
        const Outcome other = outcome(choice, words, mode, wave, i);
        CHECK(other.fault == portable.fault);
        CHECK(other.registers == portable.registers);
      }
      if (portable.fault.empty()) ++checked;
    }
  }
  CHECK(checked > 5 * 400);
}

TEST_CASE("simulator vectors: each half of a large wave gives what a small wave gives, and nothing beside it",
          "[simulator][wave]") {
  using Words = std::vector<std::uint32_t>;
  unsigned checked = 0;
  for (unsigned i = 1; i < static_cast<unsigned>(Opcode::count); ++i) {
    const OpcodeInfo& opcode = info(static_cast<Opcode>(i));
    const std::string name(opcode.name);
    const auto begins = [&](const char* text) { return name.rfind(text, 0) == 0; };
    const bool crosses = begins("v_mbcnt") || begins("v_read") || begins("v_write") || begins("v_permlane64");
    if (!is_vector(opcode) || crosses || (opcode.flags & (flag::matrix | flag::no_operands)) != 0) continue;
    std::mt19937 generator(i);
    Words scalars(scalar_index::count), rows(used_vgprs * 64);
    for (std::uint32_t& each : scalars) each = generator();
    for (std::uint32_t& each : rows) each = random_word(generator);
    scalars[operand::m0] = 1;
    if (i % 3 == 0) scalars[operand::exec_lo + i % 2] = 0;
    constexpr unsigned written[] = {mask_destination, operand::exec_lo};
    Words vectors[3], masks[3];  // of the large wave and of a small one for each half
    for (unsigned run = 0; run < 3; ++run) {
      Bench bench({Generation::gfx11, run == 0 ? WaveSize::wave64 : WaveSize::wave32});
      const unsigned first = run == 2 ? 1 : 0;
      Words before = scalars;
      for (const unsigned mask :
           {mask_source, mask_destination, unsigned{operand::vcc_lo}, unsigned{operand::exec_lo}}) {
        before[mask] = scalars[mask + first];
      }
      std::copy(before.begin(), before.end(), bench.wave.scalar);
      for (unsigned r = 0; r < used_vgprs; ++r) {
        for (unsigned lane = 0; lane < bench.wave.lanes(); ++lane)
          bench.vgpr(r, lane) = rows[r * 64 + first * 32 + lane];
      }
      const std::optional<Fault> fault = bench.run(encoded(opcode, name));
      INFO(name << " in run " << run << (fault ? ": " + fault->reason : ""));
      REQUIRE_FALSE(fault);
      Words after(bench.wave.scalar, bench.wave.scalar + 128);
      for (const unsigned at : written) {
        for (unsigned half = 0; half < bench.wave.halves; ++half) {
          masks[run].push_back(after[at + half]);
          before[at + half] = after[at + half];
        }
      }
      before.resize(after.size());
      CHECK(after == before);
      for (unsigned lane = 0; lane < bench.wave.lanes(); ++lane) {
        for (unsigned r = 0; r < used_vgprs; ++r) vectors[run].push_back(bench.vgpr(r, lane));
      }
    }
    INFO(name);
    CHECK(masks[0] == Words{masks[1][0], masks[2][0], masks[1][1], masks[2][1]});
    vectors[1].insert(vectors[1].end(), vectors[2].begin(), vectors[2].end());
    CHECK((vectors[0] == vectors[1]));
    ++checked;
  }
  CHECK(checked > 400);
}

TEST_CASE("simulator vectors: runs of multiply-adds give what their steps give one by one", "[simulator][wave]") {
  constexpr std::uint32_t keep = 0x3F0U;
  std::mt19937 generator(7);
  const auto one_of = [&](unsigned from, unsigned count) { return from + generator() % count; };
  for (unsigned i = 0; i < 200; ++i) {
    // Few rows to read, so that steps share them, and, in every other program, results that later steps read.
    const unsigned results = i % 2 == 0 ? 24 : 4, first_result = i % 4 < 2 ? 20 : 2;
    std::vector<std::uint32_t> words;
    for (unsigned step = 0; step < 40; ++step) {
      const unsigned to = one_of(first_result, results), a = encode::v(one_of(0, 8)), b = one_of(0, 8);
      const unsigned first = generator() % 4 == 0 ? one_of(40, 8) : a;
      const std::vector<std::uint32_t> add =
          generator() % 3 == 0 ? encode::vop3("v_fma_f32", to, first, encode::v(b), encode::v(one_of(20, 24)))
                               : std::vector<std::uint32_t>{encode::vop2("v_fmac_f32", to, first, b)};
      words.insert(words.end(), add.begin(), add.end());
    }
    const WaveSize wave = i % 8 < 4 ? WaveSize::wave32 : WaveSize::wave64;
    INFO("program " << i);
    // Of an even seed all lanes are on.
    const unsigned seed = i % 5 == 0 ? 2 * i + 1 : 2 * i;
    const Outcome portable = outcome(VectorChoice::portable, words, keep, wave, seed);
    REQUIRE(portable.fault.empty());
    CHECK(outcome(VectorChoice::best, words, keep, wave, seed).registers == portable.registers);
    CHECK(outcome(VectorChoice::no_avx512, words, keep, wave, seed).registers == portable.registers);
  }
}

TEST_CASE("simulator opcodes: all that the decoder takes are executed", "[simulator][wave]") {
  const SemanticsTable& table = SemanticsTable::of(VectorChoice::best);
  for (unsigned i = 1; i < static_cast<unsigned>(Opcode::count); ++i) {
    const OpcodeInfo& opcode = info(static_cast<Opcode>(i));
    if ((opcode.flags & flag::refused) != 0) continue;
    INFO(opcode.name);
    CHECK(table.find(static_cast<Opcode>(i)) != nullptr);
  }
}

}  // namespace kiln::simulator::test
