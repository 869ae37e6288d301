// The shape of streams: headers, lengths, indirect buffers, chains, calls and skips.
#include <catch2/catch.hpp>
#include <thread>

#include "bench.hpp"

namespace kiln::simulator {
namespace {

constexpr std::uint32_t nop_alone = 0xFFFF1000;
const Dwords write_at_0 = packet(0x37, {5U << 8, Bench::low(Bench::data), Bench::high(Bench::data), 0xABCD});

Dwords indirect(std::uint64_t address, std::uint32_t control) {
  return packet(0x3F, {Bench::low(address), Bench::high(address), control});
}

constexpr std::uint32_t chain = 1U << 20 | 1U << 23;

}  // namespace

TEST_CASE("simulator command processor: NOPs of every length are skipped") {
  Bench bench;
  CHECK_FALSE(bench.run(Dwords{nop_alone, nop_alone} + packet(0x10, {7}) + packet(0x10, Dwords(100, ~0U)) + write_at_0 +
                        Dwords{nop_alone}));
  CHECK(bench.get(0) == 0xABCD);
  CHECK(bench.processor->counters().packets == 6);
}

TEST_CASE("simulator command processor: headers that are none of its packets are refused, with address and dword") {
  Bench bench;
  const auto refused = [&](std::uint32_t word, const char* why) {
    const auto fault = bench.run({nop_alone, word, 0, 0, 0, 0, 0, 0, 0});
    REQUIRE(fault);
    CHECK(fault->kind == FaultKind::unknown_packet);
    CHECK(fault->address == Bench::code + 4);
    CHECK(fault->dword == word);
    CHECK_THAT(fault->reason, Catch::Contains(why));
  };
  refused(0x00000000, "type 0");
  refused(0x40000000, "type 1");
  refused(0x80000000, "type 2");
  refused(header(0x07, 1), "opcode 0x7 is not known");
  refused(header(0x24, 2), "DRAW_INDIRECT");
  refused(header(0x76, 2, 0x0A), "header bits 0x8");
  refused(header(0x20, 3), "SET_PREDICATION");  // of the graphics ring
  refused(header(0x37, 4, 0x06), "RESET_FILTER_CAM");
  refused(header(0x15, 3), "body of 3 dwords, not of 4");
  refused(header(0x15, 5), "body of 5 dwords, not of 4");
  refused(header(0x76, 1), "body of 1 dwords, not of 2 to 16383");
  refused(0xFFFF7600, "body of 16384 dwords");  // only a NOP may be one dword long
  for (const std::uint32_t opcode : {0x11, 0x12, 0x28, 0x2D, 0x2F, 0x42, 0x69})
    refused(header(opcode, 1), "compute ring");
}

TEST_CASE("simulator command processor: a body may not pass the end of its indirect buffer") {
  Bench bench;
  const auto fault = bench.run({nop_alone, header(0x37, 4), 0, 0, 0});
  CHECK(kind(fault) == FaultKind::overrun);
  CHECK(fault->address == Bench::code + 4);
}

TEST_CASE("simulator command processor: bits that no table knows are refused in every fixed dword") {
  Bench bench;
  const auto fault = bench.run(packet(0x49, {0x14 | 5U << 8, 0, 0, 0, 0, 0, 1}));
  CHECK(kind(fault) == FaultKind::unknown_packet);
  CHECK(fault->dword == 1);
  CHECK_THAT(fault->reason, Catch::StartsWith("RELEASE_MEM, dword 7: bits 0x1 "));
  CHECK(kind(bench.run(indirect(Bench::code + 64, chain | 1U << 24 | 8))) == FaultKind::unknown_packet);  // VMID
  CHECK(kind(bench.run(packet(0x46, {7 | 4U << 8 | 1U << 20}))) == FaultKind::unknown_packet);
}

TEST_CASE("simulator command processor: indirect buffers are checked before they are read") {
  Bench bench;
  const auto one = [&](std::uint64_t address, std::uint64_t bytes) { return bench.run_buffers({{address, bytes}}); };
  CHECK(kind(one(Bench::code + 4, 32)) == FaultKind::misaligned);
  CHECK(kind(one(Bench::code, 30)) == FaultKind::misaligned);
  CHECK(kind(one(Bench::code, 0)) == FaultKind::misaligned);
  CHECK(kind(one(Bench::code, 4 * 0x100000ULL)) == FaultKind::overrun);
  CHECK(kind(one(Bench::absent, 32)) == FaultKind::unmapped);
  CHECK(kind(one(Bench::code + (Bench::pages - 1) * 4096, 8192)) == FaultKind::unmapped);
  CHECK(kind(bench.processor->run({Ring::invalid, {}, nullptr})) == FaultKind::bad_state);
}

TEST_CASE("simulator command processor: buffers of a job run in order and share its registers") {
  Bench bench;
  const Dwords state = Bench::sound_state(), run = packet(0x15, {2, 3, 4, 0x8005});
  bench.put(0, state);
  bench.put(4096, run);
  CHECK_FALSE(bench.run_buffers({{Bench::code, state.size() * 4}, {Bench::code + 4096, run.size() * 4}}));
  REQUIRE(engine_record().dispatches.size() == 1);
  CHECK(kind(bench.run_buffers({{Bench::code + 4096, run.size() * 4}})) == FaultKind::bad_state);  // a new job
}

TEST_CASE("simulator command processor: a chain goes on elsewhere and does not come back") {
  Bench bench;
  bench.put(0x1000, write_at_0);
  CHECK_FALSE(bench.run(Dwords{nop_alone} + indirect(Bench::code + 0x1000, chain | 5)));
  CHECK(bench.get(0) == 0xABCD);
}

TEST_CASE("simulator command processor: a chain that is not the last packet is refused") {
  Bench bench;
  const auto fault = bench.run(indirect(Bench::code + 0x1000, chain | 5) + Dwords{nop_alone});
  CHECK(kind(fault) == FaultKind::bad_state);
  CHECK_THAT(fault->reason, Catch::Contains("not the last packet"));
}

TEST_CASE("simulator command processor: chains lead to mapped buffers, and not round for ever") {
  Bench bench;
  CHECK(kind(bench.run(indirect(Bench::absent, chain | 5))) == FaultKind::unmapped);
  CHECK(kind(bench.run(indirect(Bench::code + 0x1000, chain))) == FaultKind::bad_state);  // of no dwords
  const auto fault = bench.run(indirect(Bench::code, chain | 4));
  CHECK(kind(fault) == FaultKind::watchdog);
}

TEST_CASE("simulator command processor: the graphics ring calls a buffer and comes back; the compute ring does not") {
  Bench compute;
  compute.put(0x1000, write_at_0);
  const Dwords call = indirect(Bench::code + 0x1000, 5);
  CHECK(kind(compute.run(call)) == FaultKind::bad_state);

  Bench graphics(Generation::gfx11, Ring::graphics);
  graphics.put(0x1000, write_at_0);
  const Dwords after = packet(0x37, {5U << 8, Bench::low(Bench::data + 4), Bench::high(Bench::data), 2});
  CHECK_FALSE(graphics.run(call + after));
  CHECK(graphics.get(0) == 0xABCD);
  CHECK(graphics.get(4) == 2);
  graphics.put(0x2000, call);
  CHECK(kind(graphics.run(indirect(Bench::code + 0x2000, 4))) == FaultKind::bad_state);  // a call in a call
  graphics.put(0x2000, indirect(Bench::code + 0x1000, chain | 5));
  CHECK(kind(graphics.run(indirect(Bench::code + 0x2000, 4))) == FaultKind::bad_state);
}

TEST_CASE("simulator command processor: COND_EXEC skips where the dword is 0") {
  Bench bench;
  const Dwords stream =
      packet(0x22, {Bench::low(Bench::data + 64), Bench::high(Bench::data), 0, 5}) + write_at_0 + Dwords{nop_alone};
  CHECK_FALSE(bench.run(stream));
  CHECK(bench.get(0) == 0);
  bench.set(64, 1);
  CHECK_FALSE(bench.run(stream));
  CHECK(bench.get(0) == 0xABCD);
  bench.set(64, 0);
  CHECK(kind(bench.run(packet(0x22, {Bench::low(Bench::data + 64), Bench::high(Bench::data), 0, 5}) +
                       Dwords{nop_alone})) == FaultKind::overrun);
}

TEST_CASE("simulator command processor: a stopped device ends its jobs with the reason") {
  Bench bench;
  CHECK_FALSE(bench.run({nop_alone}));
  bench.processor->stop("a reset");
  CHECK(engine_record().stopped == "a reset");
  const auto fault = bench.run(write_at_0);
  CHECK(kind(fault) == FaultKind::planted);
  CHECK(fault->reason == "a reset");
  bench.processor->stop(nullptr);
  CHECK_FALSE(bench.run(write_at_0));
}

TEST_CASE("simulator command processor: packets with the predicate's bit act where the condition in memory says so") {
  struct Case {
    std::uint32_t control, low, high;
    bool acts;
  };
  constexpr std::uint32_t bool64 = 3U << 16, bool32 = 4U << 16, where_true = 1U << 8, hint = 1U << 12;
  const Case cases[] = {
      {bool32 | where_true, 0, 1, false},
      {bool32 | where_true, 2, 0, true},
      {bool32, 0, 1, true},
      {bool32 | hint, 2, 0, false},
      {bool64 | where_true, 0, 1, true},
      {bool64 | where_true, 0, 0, false},
      {bool64, 0, 0x8000'0000, false},
      {bool64, 0, 0, true},
      {where_true, 0, 0, true},
  };
  const std::uint64_t condition = Bench::data + 16;
  Dwords predicated = write_at_0;
  predicated[0] |= 1;
  for (const Case& each : cases) {
    Bench bench(Generation::gfx11, Ring::graphics);
    bench.set(16, each.low);
    bench.set(20, each.high);
    const Dwords set = packet(0x20, {each.control, Bench::low(condition), Bench::high(condition)});
    INFO(each.control << " " << each.low << " " << each.high);
    CHECK_FALSE(bench.run(set + predicated));
    CHECK(bench.get(0) == (each.acts ? 0xABCD : 0));
    CHECK_FALSE(bench.run(set + write_at_0));  // without the bit
    CHECK(bench.get(0) == 0xABCD);
  }
  Bench bench(Generation::gfx10_3, Ring::graphics);
  const auto refused = [&](std::uint32_t control, std::uint64_t at) {
    return kind(bench.run(packet(0x20, {control, Bench::low(at), Bench::high(at)})));
  };
  CHECK(refused(1U << 16, condition) == FaultKind::unknown_packet);  // occlusion
  CHECK(refused(2U << 16, condition) == FaultKind::unknown_packet);
  CHECK(refused(1U << 31 | bool32, condition) == FaultKind::unknown_packet);
  CHECK(refused(bool64, condition + 2) == FaultKind::unknown_packet);
  CHECK(refused(bool64, condition + 4) == FaultKind::invalid);  // RADV has it on any dword
  CHECK(refused(bool32, Bench::absent) == FaultKind::unmapped);
}

}  // namespace kiln::simulator
