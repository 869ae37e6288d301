// ACQUIRE_MEM and RELEASE_MEM: which bits act on which cache, and what a release writes.
#include <catch2/catch.hpp>

#include "bench.hpp"

namespace kiln::simulator {
namespace {

constexpr std::uint64_t data = Bench::data;

Dwords acquire(std::uint32_t caches) { return packet(0x58, {0, ~0U, 0x00FF'FFFF, 0, 0, 0xA, caches}); }

Dwords release(std::uint32_t control, std::uint32_t selects, std::uint64_t address = data, std::uint64_t value = 0) {
  return packet(
      0x49, {control, selects, Bench::low(address), Bench::high(address), Bench::low(value), Bench::high(value), 0});
}

constexpr std::uint32_t flush_event = 0x14 | 5U << 8;
constexpr std::uint32_t value32 = 1U << 29 | 3U << 24, value64 = 2U << 29 | 3U << 24, ticks = 3U << 29 | 3U << 24;

// A byte through L2 into another place, as a kernel would: reads data+0, writes data+0x1000.
const Dwords through_l2 = packet(
    0x40, {2 | 2U << 8, Bench::low(data), Bench::high(data), Bench::low(data + 0x1000), Bench::high(data + 0x1000)});

FaultKind fault_of(const Dwords& stream, Ring ring = Ring::compute, Generation generation = Generation::gfx11) {
  Bench bench(generation, ring);
  return kind(bench.run(stream));
}

constexpr auto unknown = FaultKind::unknown_packet;
constexpr auto fine = FaultKind::invalid;

}  // namespace

TEST_CASE("simulator command processor: what the host wrote is stale until an acquire invalidates L2") {
  Bench bench;
  bench.set(0, 1);
  CHECK_FALSE(bench.run(through_l2));
  bench.set(0, 2);
  CHECK_FALSE(bench.run(acquire(0x380) + through_l2 + acquire(0x8030)));  // vector, scalar and L1: not L2
  CHECK(bench.get(0x1000) == 1);
  CHECK_FALSE(bench.run(acquire(0xC3B1) + through_l2 + acquire(0x8030)));
  CHECK(bench.get(0x1000) == 2);
}

TEST_CASE("simulator command processor: what the device wrote is hidden until an acquire or a release writes L2 back") {
  Bench bench;
  bench.set(0, 5);
  CHECK_FALSE(bench.run(through_l2));
  CHECK(bench.get(0x1000) == 0);
  SECTION("acquire") { CHECK_FALSE(bench.run(acquire(1U << 15))); }
  SECTION("release") { CHECK_FALSE(bench.run(release(flush_event | 1U << 21, 0))); }
  CHECK(bench.get(0x1000) == 5);
}

TEST_CASE("simulator command processor: the bit positions of acquire and release are their own") {
  Bench bench;
  bench.set(0, 5);
  CHECK_FALSE(bench.run(through_l2));
  CHECK_FALSE(bench.run(release(flush_event | 1U << 15 | 1U << 14, 0)));  // GL1_INV, GLV_INV there
  CHECK(bench.get(0x1000) == 0);
  CHECK_FALSE(bench.run(release(flush_event | 1U << 20, 0)));  // GL2_INV alone: what was written is lost
  bench.l2.write_back();
  CHECK(bench.get(0x1000) == 0);
}

TEST_CASE("simulator command processor: discarding loses what was written, also beside a write-back") {
  for (const Dwords& discard : {acquire(1U << 15 | 1U << 13), release(flush_event | 1U << 21 | 1U << 19, 0)}) {
    Bench bench;
    bench.set(0, 5);
    CHECK_FALSE(bench.run(through_l2 + discard));
    bench.l2.write_back();
    CHECK(bench.get(0x1000) == 0);
  }
}

TEST_CASE("simulator command processor: invalidating the instruction cache makes the engine forget") {
  Bench bench;
  CHECK_FALSE(bench.run({0xFFFF1000}));
  CHECK(engine_record().forgotten == 1);  // once at the start of every job
  CHECK_FALSE(bench.run(acquire(0x380)));
  CHECK(engine_record().forgotten == 2);
  CHECK_FALSE(bench.run(acquire(1)));
  CHECK(engine_record().forgotten == 4);
}

TEST_CASE("simulator command processor: acquires that are not modelled are refused") {
  CHECK(fault_of(acquire(0xC3B1 | 1U << 16)) == fine);
  CHECK(fault_of(acquire(2)) == unknown);
  CHECK(fault_of(acquire(1U << 2)) == unknown);
  CHECK(fault_of(acquire(1U << 10)) == unknown);
  CHECK(fault_of(acquire(1U << 11)) == unknown);
  CHECK(fault_of(acquire(3U << 16)) == unknown);
  CHECK(fault_of(acquire(1U << 18)) == unknown);
  CHECK(fault_of(acquire(1U << 31)) == unknown);
  for (unsigned bit = 0; bit < 31; ++bit) {
    CHECK(fault_of(packet(0x58, {1U << bit, ~0U, 0x00FF'FFFF, 0, 0, 0xA, 0x380})) == unknown);
  }
  CHECK(fault_of(acquire(1U << 4)) == FaultKind::bad_state);
  CHECK(fault_of(packet(0x58, {0, 0x100, 0, 0, 0, 0xA, 0x380})) == unknown);
  CHECK(fault_of(packet(0x58, {0, ~0U, 0x0100'0000, 0, 0, 0xA, 0x380})) == unknown);
  CHECK(fault_of(packet(0x58, {0, ~0U, 0x00FF'FFFF, 1, 0, 0xA, 0x380})) == unknown);
  CHECK(fault_of(packet(0x58, {1, ~0U, 0x00FF'FFFF, 0, 0, 0xA, 0x380})) == unknown);
  CHECK(fault_of(packet(0x58, {0, ~0U, 0x00FF'FFFF, 0, 0, 0xA})) == unknown);  // the form before GCR
}

TEST_CASE("simulator command processor: an acquire may name either engine, on both rings") {
  const Dwords by_me = packet(0x58, {1U << 31, ~0U, 0x00FF'FFFF, 0, 0, 0xA, 0x380});
  for (const Generation generation : {Generation::gfx10_3, Generation::gfx11}) {
    CHECK(fault_of(by_me, Ring::graphics, generation) == fine);
    CHECK(fault_of(by_me, Ring::compute, generation) == fine);
  }
}

TEST_CASE("simulator command processor: counter waits are gfx11's, on the graphics ring") {
  const Dwords wait = packet(0x58, {5U << 11 | 1U << 17, ~0U, 0x01FF'FFFF, 0, 0, 1U << 31, 0x380});
  const Dwords count = release(0x28 | 5U << 8 | 1U << 31, 0);
  CHECK(fault_of(count + wait, Ring::graphics) == fine);
  CHECK(fault_of(wait, Ring::compute) == unknown);
  CHECK(fault_of(count, Ring::compute) == unknown);
  CHECK(fault_of(wait, Ring::graphics, Generation::gfx10_3) == unknown);
  CHECK(fault_of(count, Ring::graphics, Generation::gfx10_3) == unknown);
  CHECK(fault_of(packet(0x58, {5U << 11, ~0U, 0x01FF'FFFF, 0, 0, 1U << 31, 0}), Ring::graphics) == unknown);
  CHECK(fault_of(packet(0x58, {1U << 17, ~0U, 0x01FF'FFFF, 0, 0, 0, 0}), Ring::graphics) == unknown);
  CHECK(fault_of(packet(0x58, {6U << 11 | 1U << 17, ~0U, 0x01FF'FFFF, 0, 0, 1U << 31, 0}), Ring::graphics) == unknown);
}

TEST_CASE("simulator command processor: a release writes its value to memory at once, or to L2") {
  Bench bench;
  bench.settings.clock_ns = [] { return std::uint64_t{10'000'000'010}; };
  CHECK_FALSE(bench.run(release(0x00603514, 0x43000000, data, 0x2222'2222'1111'1111) +
                        release(flush_event, value32, data + 12, 0x4444'4444'3333'3333) +
                        release(0x28 | 5U << 8, ticks, data + 16) + release(0x2F | 6U << 8, value32, data + 24, 7) +
                        release(flush_event, value32 | 1U << 16, data + 32, 8)));
  CHECK(bench.get(0) == 0x1111'1111);
  CHECK(bench.get(4) == 0x2222'2222);
  CHECK(bench.get(12) == 0x3333'3333);
  CHECK(bench.get(16) == 1'000'000'001);
  CHECK(bench.get(24) == 7);
  CHECK(bench.get(32) == 0);
  bench.l2.write_back();
  CHECK(bench.get(32) == 8);
  CHECK_FALSE(bench.run(release(flush_event, 0, Bench::absent)));  // no data: no address
}

TEST_CASE("simulator command processor: a release's value comes after its write-back") {
  Bench bench;
  bench.set(0, 5);
  CHECK_FALSE(bench.run(through_l2 + release(0x00603514, 0x43000000, data + 64, 1)));
  CHECK(bench.get(0x1000) == 5);
  CHECK(bench.get(64) == 1);
  const auto fault = bench.run(through_l2 + release(0x00603514, 0x43000000, Bench::absent, 1));
  CHECK(kind(fault) == FaultKind::unmapped);
}

TEST_CASE("simulator command processor: releases that are not modelled or not allowed are refused") {
  for (const std::uint32_t interrupt : {0U, 1U, 2U, 3U, 4U, 5U, 6U, 7U}) {
    CAPTURE(interrupt);  // 3: none, once the data is written
    CHECK(fault_of(release(flush_event, 1U << 29 | interrupt << 24)) ==
          (interrupt == 0 || interrupt == 3 ? fine : FaultKind::bad_state));
  }
  CHECK(fault_of(release(flush_event, 4U << 29)) == unknown);
  CHECK(fault_of(release(flush_event, value32 | 2U << 16)) == unknown);
  CHECK(fault_of(release(0x14 | 4U << 8, 0)) == unknown);
  CHECK(fault_of(release(0x07 | 4U << 8, 0)) == unknown);
  CHECK(fault_of(release(0x3F | 5U << 8, 0)) == unknown);
  CHECK(fault_of(release(0x30 | 6U << 8, 0)) == unknown);
  CHECK(fault_of(release(0x30 | 6U << 8, 0), Ring::graphics) == fine);
  CHECK(fault_of(release(flush_event | 1U << 16, 0)) == unknown);
  CHECK(fault_of(release(flush_event | 1U << 17, 0)) == unknown);
  CHECK(fault_of(release(flush_event | 3U << 22, 0)) == unknown);
  CHECK(fault_of(release(flush_event | 1U << 28, 0)) == unknown);
  CHECK(fault_of(release(flush_event | 1U << 12, 0)) == FaultKind::bad_state);
  CHECK(fault_of(release(flush_event, value64, data + 4)) == FaultKind::misaligned);
  CHECK(fault_of(release(flush_event, value32, data + 2)) == FaultKind::misaligned);
  CHECK(fault_of(release(flush_event, value32, Bench::code)) == FaultKind::permission);
  for (const std::uint32_t bit : {7U, 24U, 30U}) {
    CHECK(fault_of(release(flush_event | 1U << bit, 0)) == fine);
    CHECK(fault_of(release(flush_event | 1U << bit, 0), Ring::compute, Generation::gfx10_3) == unknown);
  }
}

}  // namespace kiln::simulator
