// Programs: what is decoded, when it is decoded again, and what is refused.
#include <array>
#include <catch2/catch.hpp>
#include <cstring>

#include "tests/simulator/wave/bench.hpp"

namespace kiln::simulator::test {
namespace {

using encode::v;

constexpr std::uint32_t endpgm = 0xBFB00000;

struct Code {  // one program over one memory, run again and again
  FakeMemory memory;
  const SemanticsTable& semantics = SemanticsTable::of(VectorChoice::best);
  Program program{{Generation::gfx11, WaveSize::wave32}, semantics};

  std::optional<Fault> lookup(std::uint64_t pc, std::uint64_t forgotten, const Block*& block) {
    program.begin_dispatch(memory, forgotten);
    CodePage* page = nullptr;
    std::optional<Fault> fault;
    block = program.find(pc, page, fault);
    return fault;
  }
};

}  // namespace

TEST_CASE("simulator programs: unchanged code keeps its blocks, changed code needs an invalidation",
          "[simulator][wave]") {
  Code code;
  std::vector<std::uint32_t> words(16, endpgm);
  words[0] = encode::sopk("s_movk_i32", 2, 1);
  const std::uint64_t pc = code.memory.allocate(words, Rights::execute);
  const Block *first = nullptr, *second = nullptr;
  REQUIRE_FALSE(code.lookup(pc, 0, first));
  REQUIRE_FALSE(code.lookup(pc, 0, second));
  CHECK(first == second);
  REQUIRE_FALSE(code.lookup(pc, 1, second));
  CHECK(first == second);
  CHECK(first->instructions == 2);

  const std::uint32_t other = encode::sopk("s_movk_i32", 2, 9);
  std::memcpy(code.memory.host(pc), &other, 4);
  const std::optional<Fault> stale = code.lookup(pc, 1, second);
  REQUIRE(stale);
  CHECK(stale->kind == FaultKind::hazard);
  REQUIRE_FALSE(code.lookup(pc, 2, second));
  CHECK(second->decoded[0].word == other);
}

TEST_CASE("simulator programs: code that is placed beside code that ran needs no invalidation", "[simulator][wave]") {
  Code code;
  std::vector<std::uint32_t> words(1024, endpgm);
  words[0] = encode::sopk("s_movk_i32", 2, 1);
  const std::uint64_t pc = code.memory.allocate(words, Rights::execute);
  const Block *first = nullptr, *beside = nullptr;
  REQUIRE_FALSE(code.lookup(pc, 0, first));
  for (const std::uint64_t at : {std::uint64_t{8}, std::uint64_t{256}, std::uint64_t{4088}}) {
    const std::uint32_t other = encode::sopk("s_movk_i32", 3, static_cast<int>(at));
    std::memcpy(code.memory.host(pc + at), &other, 4);
    REQUIRE_FALSE(code.lookup(pc + at, 0, beside));
    CHECK(beside->decoded[0].word == other);
    const Block* again = nullptr;
    REQUIRE_FALSE(code.lookup(pc, 0, again));
    CHECK(again == first);
  }
  // The second word of the first block is one that ran; so is a word that could not be decoded.
  const std::uint32_t nop = 0xBF800000;
  std::memcpy(code.memory.host(pc + 4), &nop, 4);
  CHECK(code.lookup(pc, 0, first)->kind == FaultKind::hazard);
  REQUIRE_FALSE(code.lookup(pc, 1, first));
  const std::uint32_t unknown = 0xBF8F0000U | 0x7F0000U;
  std::memcpy(code.memory.host(pc + 512), &unknown, 4);
  REQUIRE_FALSE(code.lookup(pc + 512, 2, beside));
  REQUIRE(beside->fault.has_value());
  std::memcpy(code.memory.host(pc + 512), &nop, 4);
  CHECK(code.lookup(pc + 512, 2, beside)->kind == FaultKind::hazard);
}

TEST_CASE("simulator programs: an instruction may lie over a page's end", "[simulator][wave]") {
  Code code;
  std::vector<std::uint32_t> words(2048, endpgm);
  words[1022] = encode::sopk("s_movk_i32", 2, 1);
  words[1023] = encode::sop1("s_mov_b32", 3, encode::literal);
  words[1024] = 0x12345678;
  const std::uint64_t pc = code.memory.allocate(words, Rights::execute);
  const Block* block = nullptr;
  REQUIRE_FALSE(code.lookup(pc + 1022 * 4, 0, block));
  CHECK(block->instructions == 2);
  CHECK(block->decoded[1].instruction.literal == 0x12345678);
  CHECK(block->end == pc + 1025 * 4);
}

TEST_CASE("simulator programs: what cannot run is a fault at its place", "[simulator][wave]") {
  Bench bench;
  const std::optional<Fault> unknown = bench.run({encode::sopk("s_movk_i32", 2, 5), 0xBE80FF00U | 0x4F00U, 0});
  REQUIRE(unknown);
  CHECK(unknown->kind == FaultKind::unknown_opcode);
  CHECK(bench.sgpr(2) == 5);  // what stands before it has run

  const std::optional<Fault> message = bench.run({encode::sopp("s_sendmsg", 1)});
  REQUIRE(message);
  CHECK(message->kind == FaultKind::unknown_opcode);
  CHECK(message->reason.find("s_sendmsg") != std::string::npos);

  const std::optional<Fault> past = bench.run({encode::sopp("s_code_end")});
  REQUIRE(past);
  CHECK(past->kind == FaultKind::overrun);

  bench.set_vgpr(1, 3);
  const std::optional<Fault> registers =
      bench.run({encode::vop1("v_mov_b32", 2, v(1)), encode::vop1("v_mov_b32", 64, v(1))});
  REQUIRE(registers);
  CHECK(registers->kind == FaultKind::overrun);
  CHECK(registers->reason.find("v64 of 64") != std::string::npos);
  CHECK(bench.vgpr(2, 0) == 3);

  const std::optional<Fault> hardware = bench.run({encode::sopk("s_getreg_b32", 2, 60)});
  REQUIRE(hardware);
  CHECK(hardware->kind == FaultKind::unknown_opcode);
}

TEST_CASE("simulator programs: word at an address inside and outside the program's pages", "[simulator][wave]") {
  Code code;
  std::vector<std::uint32_t> words(2048, endpgm);
  for (const unsigned at : {0U, 3U, 600U, 1023U}) words[at] = encode::sopk("s_movk_i32", 2, static_cast<int>(at));
  const std::uint64_t pc = code.memory.allocate(words, Rights::execute);
  const Block* block = nullptr;
  CHECK_FALSE(code.program.word_at(pc).has_value());
  REQUIRE_FALSE(code.lookup(pc, 0, block));
  for (const unsigned at : {0U, 1U, 3U, 600U, 1023U}) {
    INFO(at);
    const std::optional<std::uint32_t> word = code.program.word_at(pc + at * 4);
    REQUIRE(word.has_value());
    CHECK(*word == words[at]);
  }
  CHECK_FALSE(code.program.word_at(pc + 4096).has_value());
  code.program.begin_dispatch(code.memory, 0);
  CHECK_FALSE(code.program.word_at(pc).has_value());
}

TEST_CASE("simulator programs: code needs the right to execute", "[simulator][wave]") {
  Code code;
  const std::uint64_t pc = code.memory.allocate(std::vector<std::uint32_t>(16, endpgm), Rights::read_write);
  const Block* block = nullptr;
  const std::optional<Fault> fault = code.lookup(pc, 0, block);
  REQUIRE(fault);
  CHECK(fault->kind == FaultKind::permission);
  CHECK(block == nullptr);
  const std::optional<Fault> odd = code.lookup(pc + 2, 0, block);
  REQUIRE(odd);
  CHECK(odd->kind == FaultKind::misaligned);
}

TEST_CASE("simulator programs: multiply-adds of constants form one run", "[simulator][wave]") {
  constexpr unsigned one = 242, two = 244;  // 1.0 and 2.0
  constexpr std::uint32_t three = 0x40400000, five = 0x40A00000;
  const auto fma = [](unsigned dst, unsigned a, unsigned b, unsigned c) {
    return encode::vop3("v_fma_f32", dst, a, b, c);
  };
  const auto bits = [](float value) {
    std::uint32_t result = 0;
    std::memcpy(&result, &value, sizeof(result));
    return result;
  };
  for (const WaveSize wave : {WaveSize::wave32, WaveSize::wave64}) {
    Bench bench({.wave = wave});
    for (unsigned lane = 0; lane < bench.wave.lanes(); ++lane) {
      bench.vgpr(1, lane) = bits(static_cast<float>(lane));
      bench.vgpr(2, lane) = bits(static_cast<float>(lane + 3));
      bench.vgpr(3, lane) = bits(static_cast<float>(100 - lane));
    }
    bench.sgpr(7) = three;
    const std::vector<std::uint32_t> literals = {
        encode::vop2("v_fmamk_f32", 10, v(1), 2), five, encode::vop2("v_fmamk_f32", 11, v(2), 3), five,
        encode::vop2("v_fmaak_f32", 12, v(1), 2), five, encode::vop2("v_fmaak_f32", 13, v(2), 3), five};
    REQUIRE_FALSE(bench.run(encode::join({fma(4, v(1), two, v(3)), fma(5, v(2), two, v(3)),  //
                                          fma(6, v(1), v(2), one), fma(7, v(2), v(3), one),  //
                                          fma(8, 7, two, v(3)), fma(9, 7, v(2), one), literals})));
    for (unsigned lane = 0; lane < bench.wave.lanes(); ++lane) {
      INFO("lane " << lane);
      const auto a = static_cast<float>(lane), b = static_cast<float>(lane + 3), c = static_cast<float>(100 - lane);
      const float expected[] = {a * 2 + c, b * 2 + c, a * b + 1, b * c + 1, 3 * 2 + c,
                                3 * b + 1, a * 5 + b, b * 5 + c, a * b + 5, b * c + 5};
      for (unsigned i = 0; i < 10; ++i) CHECK(bench.vgpr(4 + i, lane) == bits(expected[i]));
    }
  }
}

TEST_CASE("simulator programs: a run of multiply-adds gives what its instructions give one by one",
          "[simulator][wave]") {
  const auto fmac = [](unsigned dst, unsigned a, unsigned b) { return encode::vop2("v_fmac_f32", dst, a, b); };
  constexpr std::uint32_t nan = 0x7FA00001, infinity = 0x7F800000, one = 0x3F800000;
  for (const WaveSize wave : {WaveSize::wave32, WaveSize::wave64}) {
    for (const std::uint64_t exec : {~std::uint64_t{0}, std::uint64_t{0xF0F0'0000'FFFF'FFF7}}) {
      std::vector<std::vector<std::uint32_t>> results;
      for (const bool apart : {false, true}) {
        Bench bench({.wave = wave});
        for (unsigned lane = 0; lane < bench.wave.lanes(); ++lane) {
          for (unsigned index = 1; index < 8; ++index) bench.vgpr(index, lane) = one + index * 0x10'0000 + lane * 0x101;
        }
        bench.vgpr(2, 5) = nan;       // of a source: v4 becomes the same, quiet
        bench.vgpr(1, 9) = infinity;  // and infinity * 0 the default
        bench.vgpr(3, 9) = 0;
        bench.sgpr(7) = 0xC0200000;
        bench.set_exec(exec);
        // v4 and v6 are results and sources of what follows; then a run without such, which may be put in order.
        results.emplace_back();
        for (const auto& run : {std::array{fmac(4, v(1), 2), fmac(5, v(1), 3), fmac(6, 7, 4), fmac(4, v(6), 5)},
                                std::array{fmac(4, v(3), 2), fmac(5, v(1), 3), fmac(6, 7, 2), fmac(7, v(1), 2)}}) {
          std::vector<std::uint32_t> words;
          for (const std::uint32_t word : run) {
            words.push_back(word);
            if (apart) words.push_back(encode::sopk("s_movk_i32", 20, 1));
          }
          REQUIRE_FALSE(bench.run(words));
          CHECK(bench.vgpr(4, 5) == (nan | 0x40'0000));
          CHECK(bench.vgpr(5, 9) == 0xFFC0'0000);
          for (unsigned index = 1; index < 8; ++index) {
            for (unsigned lane = 0; lane < bench.wave.lanes(); ++lane) {
              results.back().push_back(bench.vgpr(index, lane));
            }
          }
        }
      }
      CHECK(results[0] == results[1]);
    }
  }
}

TEST_CASE("simulator programs: what lies over a page's end may change too", "[simulator][wave]") {
  Code code;
  std::vector<std::uint32_t> words(2048, endpgm);
  words[1023] = encode::sop1("s_mov_b32", 3, encode::literal);
  words[1024] = 1;
  const std::uint64_t pc = code.memory.allocate(words, Rights::execute);
  const Block* block = nullptr;
  REQUIRE_FALSE(code.lookup(pc + 1023 * 4, 0, block));
  const Block* const before = block;
  REQUIRE_FALSE(code.lookup(pc + 1023 * 4, 0, block));
  CHECK(block == before);
  const std::uint32_t other = 2;
  std::memcpy(code.memory.host(pc + 4096), &other, 4);
  const auto stale = code.lookup(pc + 1023 * 4, 0, block);
  REQUIRE(stale);
  CHECK(stale->kind == FaultKind::hazard);
  CHECK(stale->address == pc);
  REQUIRE_FALSE(code.lookup(pc + 1023 * 4, 1, block));
  CHECK(block->decoded[0].instruction.literal == 2);
  const std::uint64_t data = code.memory.allocate(4096);
  const auto refused = code.lookup(data + 8, 0, block);
  REQUIRE(refused);
  CHECK(refused->address == data + 8);

  Bench bench;  // a block ends with its page, and the next one goes on
  REQUIRE_FALSE(bench.run(std::vector<std::uint32_t>(3000, encode::sop2("s_add_u32", 2, 2, 129))));
  CHECK(bench.sgpr(2) == 3000);
  CHECK(bench.wave.instructions == 3001);
}

TEST_CASE("simulator programs: what MODE says of rounding, denormals and clamps", "[simulator][wave]") {
  struct Row {
    std::uint32_t mode, csr32, csr16;
    bool split, in32, out32, in16, out16, nearest16;
  };
  // 0x6000: the processor's rounding; 0x40 and 0x8000: zeros for denormals, in and out.
  for (const Row& row : {Row{0x0F0, 0x1F80, 0x1F80, false, false, false, false, false, true},
                         {0x0F1, 0x5F80, 0x1F80, true, false, false, false, false, true},
                         {0x0F2, 0x3F80, 0x1F80, true, false, false, false, false, true},
                         {0x0F3, 0x7F80, 0x1F80, true, false, false, false, false, true},
                         {0x0F4, 0x1F80, 0x5F80, true, false, false, false, false, false},
                         {0x0E0, 0x1FC0, 0x1F80, true, true, false, false, false, true},
                         {0x0D0, 0x9F80, 0x1F80, true, false, true, false, false, true},
                         {0x0B0, 0x1F80, 0x1FC0, true, false, false, true, false, true},
                         {0x070, 0x1F80, 0x9F80, true, false, false, false, true, true},
                         {0x000, 0x9FC0, 0x9FC0, false, true, true, true, true, true}}) {
    for (const unsigned bit : {0U, mode_bit::dx10_clamp, mode_bit::ieee, mode_bit::fp16_ovfl}) {
      Bench bench;
      bench.set_mode(row.mode | (bit != 0 ? 1U << bit : 0U));
      const Wave& wave = bench.wave;
      INFO(std::hex << row.mode << " and bit " << bit);
      CHECK(wave.csr32 == row.csr32);
      CHECK(wave.csr16 == row.csr16);
      CHECK(wave.split_mode == row.split);
      CHECK(std::array{wave.flush_in32, wave.flush_out32, wave.flush_in16, wave.flush_out16} ==
            std::array{row.in32, row.out32, row.in16, row.out16});
      CHECK(wave.nearest16 == (row.nearest16 && bit != mode_bit::fp16_ovfl));
      CHECK(wave.dx10_clamp == (bit == mode_bit::dx10_clamp));
      CHECK(wave.ieee == (bit == mode_bit::ieee));
    }
  }
}

// v57 to v63 are: what both halves of the wave write, the high one writes last.
TEST_CASE("simulator programs: shared registers have one word for lanes n and n + 32", "[simulator][wave]") {
  using W = std::uint64_t;
  for (const W exec : {~W{0}, W{0xFF}, W{0x5A} << 32U, W{0x3C'0000'000F}, W{0}}) {
    Bench bench({Generation::gfx11, WaveSize::wave64});
    bench.wave.vgpr_count = 57;
    bench.wave.shared_vgprs = 7;
    for (unsigned lane = 0; lane < 64; ++lane) {
      bench.vgpr(1, lane) = bench.vgpr(2, lane) = 1000 + lane;
      bench.vgpr(3, lane) = lane % 2 == 0 ? 5 : ~0U;
      for (unsigned r = 57; r < 64; ++r) bench.vgpr(r, lane) = 100 * r + lane % 32;
    }
    bench.set_exec(exec);
    REQUIRE_FALSE(bench.run(encode::join({{encode::vop1("v_mov_b32", 57, v(1)), encode::vop1("v_swap_b32", 58, v(2))},
                                          encode::vop3sd("v_add_co_u32", 59, 20, v(3), 129),
                                          {encode::vop1("v_mov_b32", 56, v(57))}})));
    INFO(std::hex << exec);
    CHECK(bench.exec() == exec);
    CHECK(bench.wave.scalar64(20) == (exec & 0xAAAA'AAAA'AAAA'AAAA));
    for (unsigned lane = 0; lane < 64; ++lane) {
      const unsigned low = lane % 32, high = low + 32;
      const bool first = (exec >> low & 1U) != 0, last = (exec >> high & 1U) != 0;
      const unsigned moved = last ? 1000 + high : first ? 1000 + low : 5700 + low;
      CHECK(bench.vgpr(57, lane) == moved);
      CHECK(bench.vgpr(58, lane) == (last ? 1000 + high : first ? 1000 + low : 5800 + low));
      CHECK(bench.vgpr(2, low) == (first ? 5800 + low : 1000 + low));
      CHECK(bench.vgpr(2, high) == (!last ? 1000 + high : first ? 1000 + low : 5800 + low));
      CHECK(bench.vgpr(59, lane) == (first || last ? lane % 2 == 0 ? 6 : 0 : 5900 + low));
      CHECK(bench.vgpr(60, lane) == 6000 + low);
      CHECK(bench.vgpr(56, lane) == ((exec >> lane & 1U) != 0 ? moved : 0));
    }
  }
}

}  // namespace kiln::simulator::test
