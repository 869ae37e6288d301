// WAIT_REG_MEM and EVENT_WRITE.
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "bench.hpp"
#include "simulator/command_processor/packet_table.hpp"

namespace kiln::simulator {
namespace {

constexpr std::uint64_t data = Bench::data;
constexpr std::uint32_t memory = 1U << 4;

Dwords wait(std::uint32_t control, std::uint64_t at, std::uint32_t reference, std::uint32_t mask = ~0U) {
  return packet(0x3C, {control, Bench::low(at), Bench::high(at), reference, mask, 4});
}

FaultKind on(Ring ring, const Dwords& stream) {
  Bench bench(Generation::gfx11, ring);
  return kind(bench.run(stream));
}

constexpr auto unknown = FaultKind::unknown_packet;

}  // namespace

TEST_CASE("simulator command processor: every comparison of a wait, met and not met") {
  struct Case {
    std::uint32_t function, value, reference;
    bool met;
  };
  const Case cases[] = {{0, 1, 9, true},  {1, 1, 2, true},  {1, 2, 2, false}, {2, 2, 2, true},  {2, 3, 2, false},
                        {3, 2, 2, true},  {3, 1, 2, false}, {4, 1, 2, true},  {4, 2, 2, false}, {5, 2, 2, true},
                        {5, 1, 2, false}, {6, 3, 2, true},  {6, 2, 2, false}};
  for (const Case& each : cases) {
    Bench bench;
    bench.set(8, each.value | 0xF00);
    INFO(each.function << ": " << each.value << ", " << each.reference);
    CHECK(kind(bench.run(wait(memory | each.function, data + 8, each.reference, 0xFF))) ==
          (each.met ? FaultKind::invalid : FaultKind::watchdog));
  }
}

TEST_CASE("simulator command processor: a wait sees what another thread of the host writes, whatever L2 holds") {
  Bench bench;
  bench.settings.wait_limit_ns = 60'000'000'000;
  const Dwords read_first =
      packet(0x40, {2 | 2U << 8, Bench::low(data), Bench::high(data), Bench::low(data + 4), Bench::high(data + 4)});
  std::thread host([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    bench.set(0, 77);
  });
  const auto fault = bench.run(read_first + wait(memory | 3, data, 77));
  host.join();
  CHECK(kind(fault) == FaultKind::invalid);
}

TEST_CASE("simulator command processor: a wait that is never met is a watchdog fault that says what it waited for") {
  Bench bench;
  std::uint64_t now = 0;
  bench.settings.wait_limit_ns = 1'000;
  bench.settings.clock_ns = [&now] { return now += 300; };
  const auto fault = bench.run(wait(memory | 5, data, 3, 0xFF));
  REQUIRE(kind(fault) == FaultKind::watchdog);
  CHECK(fault->reason == "WAIT_REG_MEM: never satisfied: 0x0 & 0xff >= 0x3");
  CHECK(fault->address == Bench::code);
  CHECK(now <= 300 * 6);
}

TEST_CASE("simulator command processor: a wait ends when the device is stopped") {
  Bench bench;
  bench.settings.wait_limit_ns = 60'000'000'000;
  bench.settings.clock_ns = [&bench] {  // a wait begins with the time
    bench.processor->stop("reset");
    return std::uint64_t{0};
  };
  const auto fault = bench.run(wait(memory | 3, data, 1));
  REQUIRE(kind(fault) == FaultKind::planted);
  CHECK(fault->reason == "WAIT_REG_MEM: reset");
}

TEST_CASE("simulator command processor: a wait on a register, and waits that are refused") {
  CHECK(on(Ring::compute, set_sh(0xB900, {6}) + wait(3, 0xB900 / 4, 6)) == FaultKind::invalid);
  CHECK(on(Ring::compute, wait(3, 0xB900 / 4, 6)) == FaultKind::watchdog);
  CHECK(on(Ring::compute, wait(3, 0x2004, 6)) == FaultKind::unknown_register);
  CHECK(on(Ring::compute, wait(3, 0xFFFF'FFFF, 6)) == FaultKind::unknown_register);
  CHECK(on(Ring::compute, wait(memory | 7, data, 0)) == unknown);
  CHECK(on(Ring::compute, wait(2U << 4 | 3, data, 0)) == unknown);
  CHECK(on(Ring::compute, wait(memory | 1U << 6 | 3, data, 0)) == unknown);
  CHECK(on(Ring::compute, wait(memory | 3U << 6 | 3, data, 0)) == FaultKind::invalid);
  CHECK(on(Ring::compute, wait(memory | 1U << 8 | 3, data, 0)) == unknown);
  CHECK(on(Ring::graphics, wait(memory | 1U << 8 | 3, data, 0)) == FaultKind::invalid);
  CHECK(on(Ring::compute, wait(memory | 3, data + 2, 0)) == FaultKind::misaligned);
  CHECK(on(Ring::compute, wait(memory | 3, Bench::absent, 0)) == FaultKind::unmapped);
}

TEST_CASE("simulator command processor: events are taken on their ring, with their index and length") {
  for (const EventRule& event : event_rules()) {
    if (event.body == 0) continue;
    INFO(event.name);
    const Dwords address{Bench::low(data), Bench::high(data)};
    const Dwords rest(address.begin(), address.begin() + event.body - 1);
    const Dwords right = packet(0x46, Dwords{event.type | std::uint32_t{event.index} << 8} + rest);
    CHECK(on(Ring::graphics, right) == FaultKind::invalid);
    CHECK(on(Ring::compute, right) == (event.rings == Rings::both ? FaultKind::invalid : unknown));
    CHECK(on(Ring::graphics, packet(0x46, Dwords{event.type | (event.index + 1U) << 8} + Dwords(event.body - 1U, 0))) ==
          unknown);
    CHECK(on(Ring::graphics, packet(0x46, Dwords{event.type | std::uint32_t{event.index} << 8} +
                                              Dwords(event.body == 1 ? 1 : 0, 0))) == unknown);
  }
  CHECK(on(Ring::compute, packet(0x46, {7 | 4U << 8})) == FaultKind::invalid);
  CHECK(on(Ring::compute, packet(0x46, {0x14 | 5U << 8})) == unknown);  // of releases
  CHECK(on(Ring::compute, packet(0x46, {0x3F})) == unknown);
}

TEST_CASE("simulator command processor: pipeline statistics count the invocations between start and stop") {
  const auto event = [](std::uint32_t type, std::uint32_t index = 0) { return packet(0x46, {type | index << 8}); };
  const auto sample = [](std::uint64_t at) { return packet(0x46, {0x1E | 2U << 8, Bench::low(at), Bench::high(at)}); };
  const Dwords dispatch = packet(0x15, {1, 1, 1, 5});
  for (const Ring ring : {Ring::compute, Ring::graphics}) {
    Bench bench(Generation::gfx11, ring);
    engine_record().invocations = 5'000'000'000;
    bench.set(0, 77);
    const auto fault = bench.run(Bench::sound_state() + dispatch + event(0x19) + sample(data) + dispatch + dispatch +
                                 sample(data + 88) + event(0x1A) + dispatch + sample(data + 176));
    CHECK(kind(fault) == FaultKind::invalid);
    for (std::size_t at = 0; at < 22; ++at) CHECK(bench.get(4 * at) == 0);
    for (const std::size_t each : {88, 176}) {  // ten counters of drawing, and 10,000,000,000
      CHECK(bench.get(each) == 0);
      CHECK(bench.get(each + 80) == 0x540BE400);
      CHECK(bench.get(each + 84) == 2);
    }
    CHECK(kind(bench.run(sample(data + 4))) == FaultKind::misaligned);
    CHECK(kind(bench.run(sample(Bench::absent))) == FaultKind::unmapped);
  }
}

}  // namespace kiln::simulator
