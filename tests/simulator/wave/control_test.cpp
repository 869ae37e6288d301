// What leads a program elsewhere, hardware registers, messages, clocks, and loads at the edges of memory.
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "simulator/wave/resolve.hpp"
#include "tests/simulator/wave/bench.hpp"

namespace kiln::simulator::test {
namespace {

using U = std::uint32_t;
using W = std::uint64_t;

constexpr W branch_high = W{1} << 40;

int hardware_field(unsigned id, unsigned offset = 0, unsigned width = 32) {
  return static_cast<int>(id | offset << 6U | (width - 1) << 11U);
}

W nanoseconds_now() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<W>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

}  // namespace

TEST_CASE("simulator SALU: each branch is taken on its own condition, in waves of both sizes", "[simulator][wave]") {
  struct State {
    bool scc;
    W vcc, exec;
  };
  const State states[] = {{false, 0, 0},
                          {true, 0, 0},
                          {false, 1, 0},
                          {false, 0, 1},
                          {true, 1, 1},
                          {false, branch_high, 0},
                          {false, 0, branch_high},
                          {false, branch_high, 1},
                          {true, 1, branch_high}};
  for (const WaveSize size : {WaveSize::wave32, WaveSize::wave64}) {
    const W mask = size == WaveSize::wave32 ? 0xFFFFFFFF : ~W{0};
    for (const State& state : states) {
      const bool vccz = (state.vcc & mask) == 0, execz = (state.exec & mask) == 0;
      const std::pair<const char*, bool> branches[] = {{"s_branch", true},
                                                       {"s_cbranch_scc0", !state.scc},
                                                       {"s_cbranch_scc1", state.scc},
                                                       {"s_cbranch_vccz", vccz},
                                                       {"s_cbranch_vccnz", !vccz},
                                                       {"s_cbranch_execz", execz},
                                                       {"s_cbranch_execnz", !execz},
                                                       {"s_cbranch_cdbgsys", false},
                                                       {"s_cbranch_cdbguser", false},
                                                       {"s_cbranch_cdbgsys_or_user", false},
                                                       {"s_cbranch_cdbgsys_and_user", false}};
      for (const auto& [name, taken] : branches) {
        Bench bench({.wave = size});
        bench.wave.scc = state.scc;
        bench.set_sgpr64(106, state.vcc);
        bench.set_exec(state.exec & mask);
        INFO(name << std::hex << " scc " << state.scc << " vcc " << state.vcc << " exec " << state.exec);
        REQUIRE_FALSE(bench.run({encode::sopp(name, 2), encode::sopk("s_movk_i32", 2, 7),
                                 encode::sopk("s_movk_i32", 3, 8), encode::sopk("s_movk_i32", 4, 9)}));
        CHECK(bench.sgpr(2) == (taken ? 0U : 7U));
        CHECK(bench.sgpr(3) == (taken ? 0U : 8U));
        CHECK(bench.sgpr(4) == 9);
      }
    }
  }
}

TEST_CASE("simulator SALU: the program counter is read, exchanged and kept by calls", "[simulator][wave]") {
  Bench bench;
  REQUIRE_FALSE(bench.run({encode::sop1("s_getpc_b64", 4, 0),                                            // 0
                           encode::sop2("s_add_u32", 8, 4, 152), encode::sop2("s_addc_u32", 9, 5, 128),  // 24 bytes on
                           encode::sop1("s_swappc_b64", 10, 8),                                          // 3: to 7
                           encode::sopk("s_call_b64", 12, 4),                                            // 4: to 9
                           encode::sopk("s_movk_i32", 2, 1), encode::sopp("s_endpgm"),                   // 5
                           encode::sopk("s_movk_i32", 3, 2), encode::sop1("s_setpc_b64", 0, 10),         // 7: to 4
                           encode::sopk("s_movk_i32", 16, 3), encode::sop1("s_getpc_b64", 14, 0),        // 9
                           encode::sop1("s_setpc_b64", 0, 12)}));                                        // to 5
  const W begin = bench.wave.scalar64(4) - 4;
  CHECK(bench.wave.scalar64(10) == begin + 4 * 4);
  CHECK(bench.wave.scalar64(12) == begin + 5 * 4);
  CHECK(bench.wave.scalar64(14) == begin + 11 * 4);
  CHECK(bench.sgpr(2) == 1);
  CHECK(bench.sgpr(3) == 2);
  CHECK(bench.sgpr(16) == 3);
}

TEST_CASE("simulator SALU: hardware registers are read whole and in part", "[simulator][wave]") {
  constexpr unsigned mode = 1, status = 2, trap_status = 3, lds = 6, low = 20, high = 21, id1 = 23, id2 = 24,
                     cycles = 29;
  struct Row {
    unsigned id, offset, width;
    U value;
  };
  const Row rows[] = {{trap_status, 0, 32, 0x89ABCDEF},
                      {trap_status, 0, 1, 1},
                      {trap_status, 4, 8, 0xDE},
                      {trap_status, 31, 1, 1},
                      {trap_status, 4, 1, 0},
                      {trap_status, 28, 32, 8},
                      {lds, 0, 32, 0x00340012},
                      {lds, 12, 9, 0x140},
                      {low, 0, 32, 0x55667788},
                      {high, 0, 32, 0x11223344},
                      {high, 16, 16, 0x1122},
                      {id1, 0, 32, 0x00C0FFEE},
                      {id2, 0, 32, 0},
                      {mode, 0, 32, 0x3F1},
                      {mode, 4, 4, 0xF},
                      {status, 16, 1, 1},
                      {status, 0, 1, 1},
                      {status, 9, 1, 0}};
  for (const Row& row : rows) {
    Bench bench;
    bench.set_mode(0x3F1);
    bench.wave.trap_status = 0x89ABCDEF;
    bench.wave.lds_allocation = 0x00340012;
    bench.wave.flat_scratch = 0x1122334455667788;
    bench.wave.hardware_id = 0x00C0FFEE;
    bench.wave.scc = true;
    INFO(row.id << ", from " << row.offset << ", " << row.width << " bits");
    REQUIRE_FALSE(bench.run({encode::sopk("s_getreg_b32", 4, hardware_field(row.id, row.offset, row.width))}));
    CHECK(bench.sgpr(4) == row.value);
  }
  for (const WaveSize size : {WaveSize::wave32, WaveSize::wave64}) {
    Bench bench({.wave = size});
    bench.set_exec(0);
    REQUIRE_FALSE(bench.run({encode::sopk("s_getreg_b32", 4, hardware_field(status))}));
    CHECK(bench.sgpr(4) == 0x10200);
  }
  Bench bench;  // cycles have 20 bits, and go on with the instructions
  bench.wave.clock = 0xABC12300;
  REQUIRE_FALSE(bench.run({encode::sopk("s_getreg_b32", 4, hardware_field(cycles))}));
  CHECK(bench.sgpr(4) >= 0x12300);
  CHECK(bench.sgpr(4) < 0x12310);
  const auto unknown = bench.run({encode::sopk("s_getreg_b32", 4, hardware_field(7))});
  REQUIRE(unknown);
  CHECK(unknown->reason == "s_getreg_b32: hardware register 7 is not simulated");
}

TEST_CASE("simulator SALU: hardware registers are written in part", "[simulator][wave]") {
  constexpr unsigned mode = 1, trap_status = 3, low = 20, high = 21;
  struct Row {
    unsigned id, offset, width;
    U value, mode, trap_status;
    W flat_scratch;
  };
  constexpr U mode_before = 0x3F0, trap_before = 0x89ABCDEF;
  constexpr W flat_before = 0x1122334455667788;
  const Row rows[] = {{mode, 0, 4, 0xF5, 0x3F5, trap_before, flat_before},
                      {mode, 4, 2, 0, 0x3C0, trap_before, flat_before},
                      {trap_status, 0, 32, 3, mode_before, 3, flat_before},
                      {trap_status, 8, 12, 0xF123, mode_before, 0x89A123EF, flat_before},
                      {low, 0, 32, 0xFEDCBA98, mode_before, trap_before, 0x11223344FEDCBA98},
                      {low, 16, 8, 0, mode_before, trap_before, 0x1122334455007788},
                      {high, 0, 32, 0xFEDCBA98, mode_before, trap_before, 0xFEDCBA9855667788},
                      {high, 4, 4, 9, mode_before, trap_before, 0x1122339455667788}};
  for (const Row& row : rows) {
    for (const bool immediate : {false, true}) {
      Bench bench;
      bench.set_mode(mode_before);
      bench.wave.trap_status = trap_before;
      bench.wave.flat_scratch = flat_before;
      bench.sgpr(4) = row.value;
      const int field = hardware_field(row.id, row.offset, row.width);
      INFO(row.id << ", from " << row.offset << ", " << row.width << " bits, immediate " << immediate);
      if (immediate) {
        REQUIRE_FALSE(bench.run({encode::sopk("s_setreg_imm32_b32", 0, field), row.value}));
      } else {
        REQUIRE_FALSE(bench.run({encode::sopk("s_setreg_b32", 4, field)}));
      }
      CHECK(bench.wave.mode == row.mode);
      CHECK(bench.wave.trap_status == row.trap_status);
      CHECK(bench.wave.flat_scratch == row.flat_scratch);
      CHECK(bench.sgpr(4) == row.value);
    }
  }
  Bench bench;
  const auto refused = bench.run({encode::sopk("s_setreg_b32", 4, hardware_field(2))});
  REQUIRE(refused);
  CHECK(refused->reason == "s_setreg_b32: hardware register 2 is not simulated");
}

TEST_CASE("simulator SALU: rounding and denormals have four bits of MODE each", "[simulator][wave]") {
  for (const auto& [name, simm, mode] : {std::tuple("s_round_mode", 0x16, 0x3F6U),
                                         {"s_round_mode", 0, 0x3F0U},
                                         {"s_denorm_mode", 0x15, 0x35AU},
                                         {"s_denorm_mode", 0, 0x30AU}}) {
    Bench bench;
    bench.set_mode(name[2] == 'r' ? 0x3F9 : 0x3FA);
    INFO(name << " " << simm);
    REQUIRE_FALSE(bench.run({encode::sopp(name, simm)}));
    CHECK(bench.wave.mode == mode);
  }
}

TEST_CASE("simulator SALU: of messages, the hint before the end alone is taken, and of gfx11", "[simulator][wave]") {
  Bench bench;
  REQUIRE_FALSE(bench.run({encode::sopp("s_sendmsg", 3), encode::sopp("s_sendmsg", 0x103)}));
  for (const auto& [message, named] : {std::pair(1, "1 (MSG_INTERRUPT)"), {0x102, "2"}, {4, "4"}}) {
    const auto fault = bench.run({encode::sopp("s_sendmsg", message)});
    REQUIRE(fault);
    CHECK(fault->kind == FaultKind::unknown_opcode);
    CHECK(fault->reason == "s_sendmsg: message " + std::string(named) + " is not simulated");
  }
  Bench old({Generation::gfx10_3, WaveSize::wave32, VectorChoice::best});
  const auto fault = old.run({0xBF900003});
  REQUIRE(fault);
  CHECK(fault->reason == "s_sendmsg: message 3 is not simulated");
  for (const unsigned message : {130U, 133U}) {
    bench.set_sgpr64(2, ~W{0});
    bench.set_sgpr64(4, ~W{0});
    REQUIRE_FALSE(
        bench.run({encode::sop1("s_sendmsg_rtn_b64", 2, message), encode::sop1("s_sendmsg_rtn_b32", 4, message)}));
    CHECK(bench.wave.scalar64(2) == 0);
    CHECK(bench.wave.scalar64(4) == W{0xFFFFFFFF} << 32U);
  }
  const W before = nanoseconds_now() / 10;  // 100 MHz
  REQUIRE_FALSE(bench.run({encode::sop1("s_sendmsg_rtn_b64", 2, 131)}));
  CHECK(bench.wave.scalar64(2) >= before);
  CHECK(bench.wave.scalar64(2) <= nanoseconds_now() / 10);
}

TEST_CASE("simulator SALU: what gfx10.3 alone has", "[simulator][wave]") {
  const auto old = Generation::gfx10_3;
  const auto first_zero = [&](const char* name, W in) {
    Bench bench({old, WaveSize::wave32, VectorChoice::best});
    bench.set_sgpr64(2, in);
    REQUIRE_FALSE(bench.run({0x17DU << 23U | 6U << 16U | encode::number(name, old) << 8U | 2U}));
    return bench.sgpr(6);
  };
  CHECK(first_zero("s_ff0_i32_b32", 0x1F) == 5);
  CHECK(first_zero("s_ff0_i32_b32", 0) == 0);
  CHECK(first_zero("s_ff0_i32_b32", 0xFFFFFFFF) == 0xFFFFFFFF);
  CHECK(first_zero("s_ff0_i32_b64", 0xFFFFFFFF) == 32);
  CHECK(first_zero("s_ff0_i32_b64", ~W{0} >> 1U) == 63);
  CHECK(first_zero("s_ff0_i32_b64", ~W{0}) == 0xFFFFFFFF);

  const auto clock = [&](const char* name) {
    return std::vector<U>{0x3DU << 26U | encode::number(name, old) << 18U | 4U << 6U, 0x7DU << 25U};
  };
  Bench bench({old, WaveSize::wave32, VectorChoice::best});
  bench.wave.clock = 0x1'2345'0000;
  REQUIRE_FALSE(bench.run(clock("s_memtime")));
  CHECK(bench.wave.scalar64(4) >= 0x1'2345'0000);
  CHECK(bench.wave.scalar64(4) < 0x1'2345'0010);
  std::vector<U> later = {0xBF820000, 0xBF820000};  // s_branch to the next instruction, twice
  later.insert(later.end(), {clock("s_memtime")[0], clock("s_memtime")[1]});
  REQUIRE_FALSE(bench.run(later));
  CHECK(bench.wave.scalar64(4) == 0x1'2345'0002);
  const W before = nanoseconds_now() / 10;  // 100 MHz
  REQUIRE_FALSE(bench.run(clock("s_memrealtime")));
  CHECK(bench.wave.scalar64(4) >= before);
  CHECK(bench.wave.scalar64(4) <= nanoseconds_now() / 10);
}

TEST_CASE("simulator SALU: what one source leaves in SCC", "[simulator][wave]") {
  struct Row {
    const char* name;
    W in, out;
    bool wide, scc;
  };
  const Row rows[] = {
      {"s_abs_i32", 0, 0, false, false},
      {"s_abs_i32", 0x80000000, 0x80000000, false, true},
      {"s_abs_i32", 0xFFFFFFFF, 1, false, true},
      {"s_bcnt0_i32_b32", 0xFFFFFFFF, 0, false, false},
      {"s_bcnt0_i32_b32", 0xFFFFFFFE, 1, false, true},
      {"s_bcnt0_i32_b64", ~W{0}, 0, false, false},
      {"s_bcnt0_i32_b64", 0xFFFFFFFF, 32, false, true},
      {"s_bcnt1_i32_b32", branch_high, 0, false, false},
      {"s_bcnt1_i32_b32", 8, 1, false, true},
      {"s_bcnt1_i32_b64", 0, 0, false, false},
      {"s_bcnt1_i32_b64", branch_high, 1, false, true},
      {"s_quadmask_b32", branch_high, 0, false, false},
      {"s_quadmask_b32", 0x8421'0F01, 0xF5, false, true},
      {"s_quadmask_b64", 0, 0, true, false},
      {"s_quadmask_b64", 0x8000'0000'1000'0000, 0x8080, true, true},
      {"s_wqm_b32", branch_high, 0, false, false},
      {"s_wqm_b32", 0x8000'0010, 0xF000'00F0, false, true},
      {"s_wqm_b64", 0, 0, true, false},
      {"s_wqm_b64", 0x0200'0000'8000'0000, 0x0F00'0000'F000'0000, true, true},
      {"s_not_b32", 0xFFFFFFFF, 0, false, false},
      {"s_not_b32", 0, 0xFFFFFFFF, false, true},
      {"s_not_b64", ~W{0}, 0, true, false},
      {"s_not_b64", 0xFFFFFFFF, 0xFFFFFFFF'00000000, true, true},
  };
  for (const Row& row : rows) {
    for (const bool before : {false, true}) {
      Bench bench;
      bench.wave.scc = before;
      bench.set_sgpr64(2, row.in);
      INFO(row.name << std::hex << " " << row.in);
      REQUIRE_FALSE(bench.run({encode::sop1(row.name, 6, 2)}));
      CHECK((row.wide ? bench.wave.scalar64(6) : bench.sgpr(6)) == row.out);
      CHECK(bench.wave.scc == row.scc);
    }
  }
  // These leave SCC alone.
  for (const auto& [name, in, out] : {std::tuple("s_cls_i32", W{0}, 0xFFFFFFFFU),
                                      {"s_cls_i32", W{0xFFFFFFFF}, 0xFFFFFFFFU},
                                      {"s_cls_i32", W{1}, 31U},
                                      {"s_cls_i32", W{0xBFFFFFFF}, 1U},
                                      {"s_cls_i32_i64", W{1} << 32U, 31U},
                                      {"s_clz_i32_u32", W{1}, 31U},
                                      {"s_clz_i32_u32", W{0x80000000}, 0U},
                                      {"s_clz_i32_u64", W{0}, 0xFFFFFFFFU},
                                      {"s_ctz_i32_b64", W{0}, 0xFFFFFFFFU},
                                      {"s_ctz_i32_b32", W{1}, 0U},
                                      {"s_brev_b32", W{0x12345678}, 0x1E6A2C48U},
                                      {"s_sext_i32_i8", W{0xFFFFFF7F}, 0x7FU},
                                      {"s_sext_i32_i16", W{0xFFFF7FFF}, 0x7FFFU}}) {
    for (const bool before : {false, true}) {
      Bench bench;
      bench.wave.scc = before;
      bench.set_sgpr64(2, in);
      INFO(name << std::hex << " " << in);
      REQUIRE_FALSE(bench.run({encode::sop1(name, 6, 2)}));
      CHECK(bench.sgpr(6) == out);
      CHECK(bench.wave.scc == before);
    }
  }
}

TEST_CASE("simulator SALU: sums and products with an immediate, and what they leave in SCC", "[simulator][wave]") {
  for (const auto& [in, simm, out, scc] : {std::tuple(5U, -5, 0U, false),
                                           {0x7FFFFFFFU, 1, 0x80000000U, true},
                                           {0x7FFFFFFFU, -1, 0x7FFFFFFEU, false},
                                           {0x80000000U, -1, 0x7FFFFFFFU, true},
                                           {0x80000000U, 0x7FFF, 0x80007FFFU, false},
                                           {0xFFFFFFFFU, 1, 0U, false}}) {
    Bench bench;
    bench.wave.scc = !scc;
    bench.sgpr(2) = in;
    bench.sgpr(3) = in;
    INFO(std::hex << in << " " << simm);
    REQUIRE_FALSE(bench.run({encode::sopk("s_addk_i32", 2, simm)}));
    CHECK(bench.sgpr(2) == out);
    CHECK(bench.wave.scc == scc);
    REQUIRE_FALSE(bench.run({encode::sopk("s_mulk_i32", 3, simm), encode::sopk("s_cmovk_i32", 4, -9)}));
    CHECK(bench.sgpr(3) == static_cast<U>(static_cast<std::int64_t>(static_cast<std::int32_t>(in)) * simm));
    CHECK(bench.wave.scc == scc);
    CHECK(bench.sgpr(4) == (scc ? 0xFFFFFFF7U : 0U));
  }
}

TEST_CASE("simulator: constants that stand in an instruction, by the type that reads them", "[simulator][wave]") {
  using D = DataType;
  const auto value = [](unsigned code, D type, U literal = 0x89ABCDEF) {
    return constant_of({static_cast<std::uint16_t>(code), type}, literal);
  };
  for (const auto& [code, number] :
       {std::pair(128U, 0), {129, 1}, {191, 63}, {192, 64}, {193, -1}, {194, -2}, {208, -16}}) {
    INFO(code);
    CHECK(value(code, D::b32) == static_cast<U>(number));
    CHECK(value(code, D::f16) == static_cast<U>(number));
    CHECK(value(code, D::i64) == static_cast<W>(std::int64_t{number}));
    CHECK(value(code, D::f64) == static_cast<W>(std::int64_t{number}));
  }
  for (const unsigned code : {0U, 105U, 106U, 125U, 127U, 209U, 234U, 239U, 249U, 253U, 254U, 256U, 511U}) {
    INFO(code);
    CHECK_FALSE(value(code, D::b32));
    CHECK_FALSE(value(code, D::f64));
  }
  CHECK(value(124, D::b32) == 0U);
  CHECK(value(124, D::b64) == 0U);
  struct Float {
    unsigned code;
    U half, brain, single;
    W wide;
  };
  for (const Float& one : {Float{240, 0x3800, 0x3F00, 0x3F000000, 0x3FE0000000000000},
                           {241, 0xB800, 0xBF00, 0xBF000000, 0xBFE0000000000000},
                           {242, 0x3C00, 0x3F80, 0x3F800000, 0x3FF0000000000000},
                           {243, 0xBC00, 0xBF80, 0xBF800000, 0xBFF0000000000000},
                           {244, 0x4000, 0x4000, 0x40000000, 0x4000000000000000},
                           {245, 0xC000, 0xC000, 0xC0000000, 0xC000000000000000},
                           {246, 0x4400, 0x4080, 0x40800000, 0x4010000000000000},
                           {247, 0xC400, 0xC080, 0xC0800000, 0xC010000000000000},
                           {248, 0x3118, 0x3E22, 0x3E22F983, 0x3FC45F306DC9C882}}) {
    INFO(one.code);
    for (const D type : {D::f16, D::b16, D::u16, D::i16, D::v2f16}) CHECK(value(one.code, type) == one.half);
    for (const D type : {D::bf16, D::v2bf16, D::matrix_bf16}) CHECK(value(one.code, type) == one.brain);
    for (const D type : {D::b32, D::u32, D::i32, D::f32, D::v2u16, D::v2i16, D::v2b16}) {
      CHECK(value(one.code, type) == one.single);
    }
    for (const D type : {D::b64, D::u64, D::i64, D::f64}) CHECK(value(one.code, type) == one.wide);
  }
  for (const auto& [code, address] : {std::pair(235U, W{0x6000'0000'0000'0000}),
                                      {236U, W{0x6000'0000'FFFF'FFFF}},
                                      {237U, W{0x6000'0001'0000'0000}},
                                      {238U, W{0x6000'0001'FFFF'FFFF}}}) {
    INFO(code);
    CHECK(value(code, D::b64) == address);
    CHECK(value(code, D::b32) == address >> 32U);
  }
  CHECK(value(255, D::b32) == 0x89ABCDEFU);
  CHECK(value(255, D::b64) == 0x89ABCDEFU);
  CHECK(value(255, D::u64) == 0x89ABCDEFU);
  CHECK(value(255, D::i64) == 0xFFFFFFFF89ABCDEFU);
  CHECK(value(255, D::i64, 0x09ABCDEF) == 0x09ABCDEFU);
  CHECK(value(255, D::f64) == 0x89ABCDEF00000000U);
}

TEST_CASE("simulator SMEM: loads at the edges of memory and of buffers", "[simulator][wave]") {
  Bench bench;
  std::vector<U> data(1024);
  for (U i = 0; i < data.size(); ++i) data[i] = 1000 + i;
  const W address = bench.memory.allocate(data);
  // The low two bits of the base, of the offset and of their sum count for nothing.
  bench.set_sgpr64(2, address + 3);
  bench.sgpr(4) = 6;
  REQUIRE_FALSE(bench.run(encode::join({encode::smem("s_load_b32", 20, 2, 3), encode::smem("s_load_b32", 21, 2, 2, 4),
                                        encode::smem("s_load_b64", 22, 2, 4088)})));
  CHECK(bench.sgpr(20) == 1000);
  CHECK(bench.sgpr(21) == 1002);
  CHECK(bench.wave.scalar64(22) == (W{2023} << 32U | 2022));
  bench.set_sgpr64(2, address + 4096);
  REQUIRE_FALSE(bench.run(encode::smem("s_load_b32", 20, 2, -4)));
  CHECK(bench.sgpr(20) == 2023);
  // The second word lies behind the page.
  bench.set_sgpr64(2, address);
  bench.set_sgpr64(20, 5);
  const auto across = bench.run(encode::smem("s_load_b64", 20, 2, 4092));
  REQUIRE(across);
  CHECK(across->kind == FaultKind::unmapped);
  CHECK(across->address == address + 4096);
  CHECK(bench.wave.scalar64(20) == 5);

  struct Row {
    U stride, records;
    int offset;
    U soffset;
    U inside;  // words
  };
  for (const Row& row : {Row{0, 12, 0, 0, 3},
                         {0, 12, 4, 0, 2},
                         {0, 12, 0, 8, 1},
                         {0, 12, 4, 8, 0},
                         {0, 12, 12, 0, 0},
                         {0, 15, 0, 0, 3},
                         {0, 16, 0, 0, 4},
                         {0, 12, 3, 3, 2},
                         {8, 2, 4, 0, 3},
                         {8, 2, 16, 0, 0},
                         {4, 1, 0, 0, 1}}) {
    INFO(row.stride << " " << row.records << " " << row.offset << " " << row.soffset);
    bench.set_buffer(8, address + 2, row.stride, row.records, encode::raw_buffer);
    bench.sgpr(4) = row.soffset;
    for (unsigned i = 20; i < 24; ++i) bench.sgpr(i) = 7;
    REQUIRE_FALSE(bench.run(encode::smem("s_buffer_load_b128", 20, 8, row.offset, row.soffset == 0 ? 124 : 4)));
    const U first = 1000 + (static_cast<U>(row.offset) + row.soffset) / 4;
    for (unsigned i = 0; i < 4; ++i) CHECK(bench.sgpr(20 + i) == (i < row.inside ? first + i : 0U));
  }
  bench.set_buffer(8, address, 0, 8192, encode::raw_buffer);
  const auto behind = bench.run(encode::smem("s_buffer_load_b64", 20, 8, 4092));
  REQUIRE(behind);
  CHECK(behind->kind == FaultKind::unmapped);
  CHECK(behind->address == address + 4096);
}

}  // namespace kiln::simulator::test
