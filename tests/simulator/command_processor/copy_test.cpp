// WRITE_DATA, COPY_DATA, DMA_DATA, ATOMIC_MEM.
#include <catch2/catch.hpp>

#include "bench.hpp"

namespace kiln::simulator {
namespace {

constexpr std::uint64_t data = Bench::data;

Dwords address(std::uint64_t at) { return {Bench::low(at), Bench::high(at)}; }

Dwords write(std::uint32_t control, std::uint64_t at, const Dwords& values) {
  return packet(0x37, Dwords{control} + address(at) + values);
}
Dwords copy(std::uint32_t control, std::uint64_t from, std::uint64_t to) {
  return packet(0x40, Dwords{control} + address(from) + address(to));
}
Dwords dma(std::uint32_t control, std::uint64_t from, std::uint64_t to, std::uint32_t command) {
  return packet(0x50, Dwords{control} + address(from) + address(to) + Dwords{command});
}
Dwords atomic(std::uint32_t control, std::uint64_t at, std::uint64_t source, std::uint64_t compare) {
  return packet(0x1E, Dwords{control} + address(at) + address(source) + address(compare) + Dwords{10});
}

constexpr std::uint32_t to_register = 0, to_l2 = 2U << 8, to_memory = 5U << 8, confirm = 1U << 20, wide = 1U << 16;

FaultKind on(Ring ring, const Dwords& stream, Generation generation = Generation::gfx11) {
  Bench bench(generation, ring);
  return kind(bench.run(stream));
}
FaultKind compute(const Dwords& stream) { return on(Ring::compute, stream); }

constexpr auto unknown = FaultKind::unknown_packet;

}  // namespace

TEST_CASE("simulator command processor: WRITE_DATA writes memory at once, L2 with its write-back, and registers") {
  Bench bench;
  CHECK_FALSE(bench.run(write(to_memory | confirm, data + 4, {1, 2, 3}) + write(to_l2, data + 64, {4, 5})));
  CHECK(bench.get(4) == 1);
  CHECK(bench.get(12) == 3);
  CHECK(bench.get(64) == 0);
  bench.l2.write_back();
  CHECK(bench.get(64) == 4);
  CHECK(bench.get(68) == 5);

  CHECK_FALSE(bench.run(write(to_memory | 1U << 16, data + 128, {6, 7})));  // one address for all
  CHECK(bench.get(128) == 7);
  CHECK(bench.get(132) == 0);

  CHECK_FALSE(bench.run(Bench::sound_state() + write(to_register, 0xB900 / 4, {8, 9}) + packet(0x15, {1, 1, 1, 5})));
  REQUIRE(engine_record().dispatches.size() == 1);
  CHECK(engine_record().dispatches[0].user_data[1] == 9);
}

TEST_CASE("simulator command processor: WRITE_DATA refuses what it does not know") {
  CHECK(compute(write(1U << 8, data, {1})) == unknown);
  CHECK(compute(write(3U << 8, data, {1})) == unknown);
  for (const Ring ring : {Ring::compute, Ring::graphics}) {  // engines
    CHECK(on(ring, write(to_memory | 1U << 30, data, {1})) == FaultKind::invalid);
    CHECK(on(ring, write(to_memory | 2U << 30, data, {1})) == unknown);
  }
  CHECK(compute(write(to_memory, data + 2, {1})) == FaultKind::misaligned);
  CHECK(compute(write(to_memory, Bench::absent, {1})) == FaultKind::unmapped);
  CHECK(compute(write(to_memory, Bench::code, {1})) == FaultKind::permission);
  CHECK(compute(write(to_l2, Bench::code, {1})) == FaultKind::permission);
  CHECK(compute(write(to_memory, data + 16 * 4096 - 4, {1, 2})) == FaultKind::unmapped);
  CHECK(compute(write(to_register, 0x263E, {1})) == FaultKind::unknown_register);
  CHECK(compute(write(to_register, 0xFFFF'FFFF, {1})) == FaultKind::unknown_register);
  CHECK(compute(write(to_register, 0x1'0000'0000 | 0xB900 / 4, {1})) == FaultKind::unknown_register);
  CHECK(compute(write(to_memory, 0x0001'0000'0000'0000, {1})) == unknown);
}

TEST_CASE("simulator command processor: the high half of an address may be sign-extended, and nothing else") {
  Bench bench;
  constexpr std::uint64_t extended = data | 0xFFFF'0000'0000'0000;
  bench.set(16, 9);
  CHECK_FALSE(bench.run(write(to_memory, extended, {1}) + copy(1 | to_memory, extended + 16, extended + 8) +
                        dma(0, extended, extended + 64, 4)));
  CHECK(bench.get(0) == 1);
  CHECK(bench.get(8) == 9);
  CHECK(bench.get(64) == 1);
  for (const std::uint64_t odd : {data | 0x7FFF'0000'0000'0000, data | 0x0001'0000'0000'0000, 0xFFFF'0000'0020'0000})
    CHECK(compute(write(to_memory, odd, {1})) == unknown);
}

TEST_CASE("simulator command processor: a fault of memory names the packet and the data's address") {
  Bench bench;
  const auto fault = bench.run(Dwords{0xFFFF1000} + write(to_memory, Bench::absent, {1}));
  REQUIRE(fault);
  CHECK(fault->address == Bench::absent);
  CHECK(fault->dword == header(0x37, 4));
  CHECK_THAT(fault->reason, Catch::EndsWith("(WRITE_DATA at 0x100004)"));
}

TEST_CASE("simulator command processor: COPY_DATA moves words between its places") {
  Bench bench;
  bench.settings.clock_ns = [] { return std::uint64_t{3'000'000'070}; };
  bench.set(0, 10);
  bench.set(4, 11);
  CHECK_FALSE(bench.run(copy(1 | to_memory | wide, data, data + 16) + copy(1 | to_memory, data, data + 32) +
                        copy(5 | to_memory | wide, 0x2222'2222'1111'1111, data + 48) +
                        copy(9 | to_memory | wide, 0, data + 56) + copy(2 | to_l2, data, data + 64)));
  CHECK(bench.get(16) == 10);
  CHECK(bench.get(20) == 11);
  CHECK(bench.get(32) == 10);
  CHECK(bench.get(36) == 0);
  CHECK(bench.get(48) == 0x1111'1111);
  CHECK(bench.get(52) == 0x2222'2222);
  CHECK(bench.get(56) == 300'000'007);  // 100 MHz
  CHECK(bench.get(60) == 0);
  CHECK(bench.get(64) == 0);
  bench.l2.write_back();
  CHECK(bench.get(64) == 10);

  CHECK_FALSE(bench.run(Bench::sound_state() + copy(1 | to_register, data, 0xB908 / 4) +
                        copy(0 | to_memory, 0xB908 / 4, data + 72) + packet(0x15, {1, 1, 1, 5})));
  CHECK(bench.get(72) == 10);
  REQUIRE(engine_record().dispatches.size() == 1);
  CHECK(engine_record().dispatches[0].user_data[2] == 10);
}

TEST_CASE("simulator command processor: COPY_DATA refuses what it does not know") {
  for (const std::uint32_t from : {3, 4, 6, 7, 8, 10, 15})
    CHECK(compute(copy(from | to_memory, data, data)) == unknown);
  for (const std::uint32_t to : {1, 3, 4, 6, 15}) CHECK(compute(copy(5 | to << 8, data, data)) == unknown);
  CHECK(compute(copy(5 | to_memory | wide, 1, data + 4)) == FaultKind::misaligned);
  CHECK(compute(copy(1 | to_memory | wide, data + 4, data)) == FaultKind::misaligned);
  CHECK(compute(copy(1 | to_memory, data + 1, data)) == FaultKind::misaligned);
  CHECK(compute(copy(1 | to_memory, 0x1'0000'0000'0000, data)) == unknown);
  CHECK(compute(copy(0 | to_memory, 0x2004, data)) == FaultKind::unknown_register);
  CHECK(compute(copy(0 | to_memory | wide, 0xB93C / 4, data)) == FaultKind::unknown_register);
  CHECK(compute(copy(5 | to_register, 1, 0xB850 / 4)) == FaultKind::unknown_register);
  CHECK(compute(copy(5 | to_memory | 1U << 30, 1, data)) == FaultKind::invalid);
  CHECK(compute(copy(5 | to_memory | 2U << 30, 1, data)) == unknown);
  CHECK(compute(copy(1 | to_memory, Bench::absent, data)) == FaultKind::unmapped);
}

TEST_CASE("simulator command processor: DMA_DATA copies, fills and prefetches") {
  Bench bench;
  for (std::uint32_t at = 0; at < 2048; ++at) bench.set(at * 4, at);
  constexpr std::uint32_t both_l2 = 3U << 29 | 3U << 20, sync = 1U << 31;
  CHECK_FALSE(bench.run(dma(sync, data + 4, data + 0x3FF4, 8000)));  // over pages on both sides, past L2
  CHECK(bench.get(0x3FF4) == 1);
  CHECK(bench.get(0x3FF4 + 7996) == 2000);
  CHECK(bench.get(0x3FF4 + 8000) == 0);
  CHECK_FALSE(bench.run(dma(sync | both_l2, data, data + 0x8000, 6)));  // bytes, in L2
  CHECK(bench.get(0x8004) == 0);
  bench.l2.write_back();
  CHECK(bench.get(0x8004) == 1);
  CHECK_FALSE(bench.run(dma(sync | 2U << 29, 0xA5A5A5A5, data + 0x9FFC, 8)));
  CHECK(bench.get(0x9FFC) == 0xA5A5A5A5);
  CHECK(bench.get(0xA000) == 0xA5A5A5A5);
  CHECK(bench.get(0xA004) == 0);
  const auto pages = bench.l2.counters().pages_read;
  CHECK_FALSE(bench.run(dma(3U << 29 | 2U << 20, data + 0xC000, data + 0xC000, 8192)));
  CHECK(bench.l2.counters().pages_read == pages + 2);
  CHECK_FALSE(bench.run(dma(sync, 0, 0, 0)));  // waits, and moves nothing
}

TEST_CASE("simulator command processor: DMA_DATA refuses what it does not know") {
  CHECK(compute(dma(1U << 29, data, data, 4)) == unknown);  // GDS
  CHECK(compute(dma(1U << 20, data, data, 4)) == unknown);
  CHECK(compute(dma(1, data, data + 64, 4)) == unknown);  // prefetching engine
  CHECK(on(Ring::graphics, dma(1, data, data + 64, 4)) == FaultKind::invalid);
  CHECK(compute(dma(0, data, data + 64, 1U << 26 | 4)) == unknown);  // from a register
  CHECK(compute(dma(2U << 29, 1, data, 6)) == FaultKind::misaligned);
  CHECK(compute(dma(2U << 29, 1, data + 2, 4)) == FaultKind::misaligned);
  CHECK(compute(dma(2U << 29 | 2U << 20, 1, data, 4)) == FaultKind::bad_state);
  CHECK(compute(dma(0, 0x1'0000'0000'0000, data, 4)) == unknown);
  CHECK(compute(dma(0, data, Bench::code, 4)) == FaultKind::permission);
  CHECK(compute(dma(0, Bench::absent, data, 4)) == FaultKind::unmapped);
  CHECK(compute(dma(0, data, data + 0xF000, 8192)) == FaultKind::unmapped);
  constexpr std::uint32_t prefetch = 3U << 29 | 2U << 20;
  CHECK(compute(dma(prefetch, data, data, 32768)) == FaultKind::bad_state);
  CHECK(on(Ring::compute, dma(prefetch, data, data, 32768), Generation::gfx10_3) == FaultKind::invalid);
  CHECK(compute(dma(prefetch, data, data, 32736)) == FaultKind::invalid);
  CHECK(compute(dma(prefetch, data, data, 32737)) == FaultKind::bad_state);
  CHECK(compute(dma(3U << 29 | 3U << 20, Bench::absent, data, 4)) == FaultKind::unmapped);  // through L2
  CHECK(compute(dma(3U << 29 | 3U << 20, data, Bench::code, 4)) == FaultKind::permission);
}

TEST_CASE("simulator command processor: atomics act in L2") {
  struct Case {
    std::uint32_t code, before, source, compare, after;
  };
  const Case cases[] = {
      {0x47, 5, 9, 0, 9},          {0x48, 5, 9, 5, 9},     {0x48, 5, 9, 6, 5},     {0x4F, 5, 9, 0, 14},
      {0x50, 5, 9, 0, 0xFFFFFFFC}, {0x51, ~0U, 1, 0, ~0U}, {0x52, ~0U, 1, 0, 1},   {0x53, ~0U, 1, 0, 1},
      {0x54, ~0U, 1, 0, ~0U},      {0x55, 6, 3, 0, 2},     {0x56, 6, 3, 0, 7},     {0x57, 6, 3, 0, 5},
      {0x58, 6, 6, 0, 0},          {0x58, 5, 6, 0, 6},     {0x59, 0, 6, 0, 6},     {0x59, 4, 6, 0, 3},
      {0x0F, 5, 9, 0, 14},         {0x51, 5, ~0U, 0, ~0U}, {0x51, 3, 5, 0, 3},     {0x53, 3, 5, 0, 5},
      {0x53, 5, ~0U, 0, 5},        {0x52, 1, ~0U, 0, 1},   {0x54, 1, ~0U, 0, ~0U}, {0x58, 7, 6, 0, 0},
      {0x59, 9, 6, 0, 6},          {0x59, 6, 6, 0, 5}};
  for (const Case& each : cases) {
    Bench bench;
    bench.set(0x100, each.before);
    CHECK_FALSE(bench.run(atomic(each.code, data + 0x100, each.source, each.compare)));
    bench.l2.write_back();
    INFO("operation " << each.code);
    CHECK(bench.get(0x100) == each.after);
  }
  Bench bench;
  bench.set(0x100, ~0U);
  CHECK_FALSE(bench.run(atomic(0x6F, data + 0x100, 1, 0)));
  bench.l2.write_back();
  CHECK(bench.get(0x100) == 0);
  CHECK(bench.get(0x104) == 1);
  CHECK(compute(atomic(0x41, data, 1, 0)) == unknown);
  CHECK(compute(atomic(0x48 | 2U << 8, data, 1, 0)) == unknown);
  CHECK(compute(atomic(0x4F | 1U << 8, data, 1, 0)) == unknown);
  CHECK(compute(atomic(0x48 | 1U << 8, data, 1, 0)) == FaultKind::invalid);
  CHECK(compute(atomic(0x48 | 1U << 8, data, 1, 7)) == FaultKind::watchdog);
  CHECK(compute(atomic(0x6F, data + 4, 1, 0)) == FaultKind::misaligned);
  CHECK(compute(atomic(0x4F, Bench::code, 1, 0)) == FaultKind::permission);
  CHECK(compute(atomic(0x4F | 1U << 30, data, 1, 0)) == FaultKind::invalid);
  CHECK(compute(atomic(0x4F | 2U << 30, data, 1, 0)) == unknown);
}

TEST_CASE("simulator command processor: atomics on words of 64 bits, and operations that are none") {
  struct Case {
    std::uint32_t code;
    std::uint64_t before, source, compare, after;
  };
  constexpr std::uint64_t high = 0x1'0000'0000;
  const Case cases[] = {{0x67, 5, 9 * high, 0, 9 * high},
                        {0x68, 5 + high, 9 * high, 5 + high, 9 * high},
                        {0x68, 5 + high, 9 * high, 5, 5 + high},
                        {0x6F, 0xFFFF'FFFF, 1, 0, high},
                        {0x70, high, 1, 0, 0xFFFF'FFFF},
                        {0x71, high, ~std::uint64_t{0}, 0, ~std::uint64_t{0}},
                        {0x72, high, 5, 0, 5},
                        {0x73, high, ~std::uint64_t{0}, 0, high},
                        {0x74, high, 5, 0, high},
                        {0x75, 3 * high + 3, 6 * high + 1, 0, 2 * high + 1},
                        {0x76, 3 * high, 4 * high + 1, 0, 7 * high + 1},
                        {0x77, 3 * high, 2 * high + 1, 0, high + 1},
                        {0x78, 0xFFFF'FFFF, high, 0, high},
                        {0x78, high, high, 0, 0},
                        {0x79, high, 2 * high, 0, 0xFFFF'FFFF},
                        {0x79, 0, 2 * high, 0, 2 * high}};
  for (const Case& each : cases) {
    Bench bench;
    bench.set(0x108, Bench::low(each.before));
    bench.set(0x10C, Bench::high(each.before));
    bench.set(0x110, 77);
    CHECK_FALSE(bench.run(atomic(each.code, data + 0x108, each.source, each.compare)));
    bench.l2.write_back();
    INFO("operation " << each.code);
    CHECK(bench.get(0x108) == Bench::low(each.after));
    CHECK(bench.get(0x10C) == Bench::high(each.after));
    CHECK(bench.get(0x110) == 77);
  }
  for (std::uint32_t code = 0; code < 128; ++code) {
    const std::uint32_t plain = code & 0x1F;
    const bool known = plain == 7 || plain == 8 || (plain >= 15 && plain <= 25);
    CAPTURE(code);
    CHECK(compute(atomic(code, data, 1, 0)) == (known ? FaultKind::invalid : unknown));
  }
  CHECK(compute(atomic(0x4F, data + 4, 1, 0)) == FaultKind::invalid);
  CHECK(compute(atomic(0x4F, data + 2, 1, 0)) == unknown);  // the field has no such bit
  CHECK(compute(atomic(0x4F, Bench::absent, 1, 0)) == FaultKind::unmapped);
}

}  // namespace kiln::simulator
