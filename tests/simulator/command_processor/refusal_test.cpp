// What packets are refused for, in the words of the fault, with the dword that is wrong.
#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "bench.hpp"

namespace kiln::simulator {
namespace {

struct RefusedPacket {
  Ring ring;
  Dwords packet;
  FaultKind kind;
  std::string reason;  // after the packet's name; a fault with ", dword N" shows body dword N, any other the header
};

constexpr std::uint32_t at_low = static_cast<std::uint32_t>(Bench::data),
                        at_high = static_cast<std::uint32_t>(Bench::data >> 32);
constexpr std::uint32_t too_high = 0x1'0000, all_of_it = 0x00FF'FFFF, release_event = 0x14 | 5U << 8;

Dwords waiting(std::uint32_t control, std::uint32_t at) { return packet(0x3C, {control, at, at_high, 0, ~0U, 4}); }
Dwords acquiring(std::uint32_t form, std::uint32_t low, std::uint32_t high, std::uint32_t poll, std::uint32_t caches) {
  return packet(0x58, {form, low, high, 0, 0, poll, caches});
}
Dwords releasing(std::uint32_t control, std::uint32_t selects, std::uint32_t at = at_low) {
  return packet(0x49, {control, selects, at, at_high, 0, 0, 0});
}
Dwords changing(std::uint32_t control, std::uint32_t at = at_low, std::uint32_t compare = 0) {
  return packet(0x1E, {control, at, at_high, 1, 0, compare, 0, 4});
}

std::vector<RefusedPacket> refused_packets() {
  constexpr auto compute = Ring::compute, graphics = Ring::graphics;
  constexpr auto unknown = FaultKind::unknown_packet, odd = FaultKind::misaligned, state = FaultKind::bad_state;
  constexpr auto no_register = FaultKind::unknown_register;
  const std::string whole = "a range that is not the whole of memory", high = "an address of more than 48 bits";
  const std::string by4 = "an address that is not a multiple of 4", by8 = "an address that is not a multiple of 8";
  const std::string no_prefetch = "the compute ring has no prefetching engine";
  return {
      {compute, waiting(0x17, at_low), unknown, "WAIT_REG_MEM, dword 1: function 7 does not exist"},
      {compute, waiting(0x23, at_low), unknown, "WAIT_REG_MEM, dword 1: a space that does not exist"},
      {compute, waiting(0x53, at_low), unknown, "WAIT_REG_MEM, dword 1: operation 1 is not known"},
      {compute, waiting(0x93, at_low), unknown, "WAIT_REG_MEM, dword 1: operation 2 is not known"},
      {compute, waiting(0x113, at_low), unknown, "WAIT_REG_MEM, dword 1: " + no_prefetch},
      {compute, waiting(0x13, at_low + 2), odd, "WAIT_REG_MEM, dword 2: " + by4},
      {compute, waiting(3, 0x4'0000), no_register, "WAIT_REG_MEM, dword 2: no register has that number"},
      {compute, waiting(3, 0x3'FFFF), no_register, "WAIT_REG_MEM, dword 2: register 0xffffc is not known on gfx11"},
      {compute, packet(0x46, {0x3F}), unknown, "EVENT_WRITE, dword 1: event 0x3f is not known"},
      {compute, packet(0x46, {7 | 5U << 8}), unknown, "EVENT_WRITE, dword 1: CS_PARTIAL_FLUSH has index 4, not 5"},
      {compute, packet(0x46, {7 | 4U << 8, 0, 0}), unknown, "EVENT_WRITE: CS_PARTIAL_FLUSH has 1 dwords, not 3"},
      {graphics, packet(0x46, {0x1E | 2U << 8, at_low + 4, at_high}), odd, "EVENT_WRITE, dword 2: " + by8},
      {compute, releasing(0x3F | 5U << 8, 0), unknown, "RELEASE_MEM, dword 1: event 0x3f is not one of a release here"},
      {compute, releasing(release_event | 1U << 17, 0), unknown, "RELEASE_MEM, dword 1: GL2_RANGE of a range"},
      {compute, releasing(release_event | 3U << 22, 0), unknown, "RELEASE_MEM, dword 1: SEQ 3"},
      {compute, releasing(release_event | 1U << 12, 0), state, "RELEASE_MEM, dword 1: GLM_WB without GLM_INV"},
      {compute, releasing(release_event | 1U << 31, 0), unknown,
       "RELEASE_MEM, dword 1: PWS_ENABLE is for the graphics ring"},
      {compute, releasing(release_event, 1U << 24), state,
       "RELEASE_MEM, dword 2: INT_SEL 1 asks for an interrupt, which is the kernel's"},
      {compute, releasing(release_event, 4U << 29), unknown, "RELEASE_MEM, dword 2: DATA_SEL 4 is not known"},
      {compute, releasing(release_event, 1U << 29 | 2U << 16), unknown, "RELEASE_MEM, dword 2: DST_SEL 2 is not known"},
      {compute, releasing(release_event, 1U << 29, at_low + 2), odd, "RELEASE_MEM, dword 3: " + by4},
      {compute, releasing(release_event, 2U << 29, at_low + 4), odd, "RELEASE_MEM, dword 3: " + by8},
      {compute, releasing(release_event, 3U << 29, at_low + 4), odd, "RELEASE_MEM, dword 3: " + by8},
      {compute, acquiring(0, 0x100, all_of_it, 10, 0), unknown, "ACQUIRE_MEM, dword 2: " + whole},
      {compute, acquiring(0, ~0U, all_of_it - 1, 10, 0), unknown, "ACQUIRE_MEM, dword 2: " + whole},
      {compute, acquiring(0, ~0U, all_of_it + 1, 10, 0), unknown, "ACQUIRE_MEM, dword 3: " + whole},
      {compute, acquiring(1U << 17, ~0U, all_of_it, 10, 0), unknown,
       "ACQUIRE_MEM, dword 1: fields of a counter wait without PWS_ENA"},
      {compute, acquiring(1U << 17, ~0U, all_of_it, 10 | 1U << 31, 0), unknown,
       "ACQUIRE_MEM, dword 6: PWS_ENA is for the graphics ring"},
      {graphics, acquiring(0, ~0U, all_of_it, 10 | 1U << 31, 0), unknown,
       "ACQUIRE_MEM, dword 1: PWS_ENA without PWS_ENA2"},
      {graphics, acquiring(1U << 17 | 6U << 11, ~0U, all_of_it, 10 | 1U << 31, 0), unknown,
       "ACQUIRE_MEM, dword 1: a stage or a counter that does not exist"},
      {graphics, acquiring(1U << 17 | 3U << 14, ~0U, all_of_it, 10 | 1U << 31, 0), unknown,
       "ACQUIRE_MEM, dword 1: a stage or a counter that does not exist"},
      {compute, acquiring(0, ~0U, all_of_it, 10, 2), unknown, "ACQUIRE_MEM, dword 7: GLI_INV of a range"},
      {compute, acquiring(0, ~0U, all_of_it, 10, 3U << 16), unknown, "ACQUIRE_MEM, dword 7: SEQ 3"},
      {compute, acquiring(0, ~0U, all_of_it, 10, 1U << 4), state, "ACQUIRE_MEM, dword 7: GLM_WB without GLM_INV"},
      {compute, packet(0x3F, {0x10'1000, 0, 1U << 23 | 5}), state,
       "INDIRECT_BUFFER, dword 3: a call without CHAIN is only for the graphics ring"},
      {compute, packet(0x3F, {0x10'1000, 0, 1U << 23 | 1U << 20}), state,
       "INDIRECT_BUFFER, dword 3: an indirect buffer of no dwords"},
      {compute, packet(0x76, {0x400, 1}), no_register, "SET_SH_REG, dword 2: 0xc000 is past the registers it can set"},
      {compute, packet(0x16, {at_low + 2, at_high, 5}), odd,
       "DISPATCH_INDIRECT, dword 1: group counts at 0xffff800000200002, not of whole dwords"},
      {compute, packet(0x16, {at_low, too_high, 5}), unknown, "DISPATCH_INDIRECT, dword 2: " + high},
      {graphics, packet(0x16, {0, 5}), state, "DISPATCH_INDIRECT: no SET_BASE came before it in this job"},
      {compute, packet(0x15, {1, 1, 1, 4}), state, "DISPATCH_DIRECT, dword 4: COMPUTE_SHADER_EN is not set"},
      {graphics,
       {header(0x15, 4, 0), 1, 1, 1, 5},
       state,
       "DISPATCH_DIRECT: on the graphics ring a dispatch needs SHADER_TYPE 1 in its header"},
      {graphics, packet(0x20, {1U << 16, at_low, at_high}), unknown,
       "SET_PREDICATION, dword 1: operation 1, a query of draws, is not modelled"},
      {compute, packet(0x37, {1U << 8, at_low, at_high, 1}), unknown, "WRITE_DATA, dword 1: DST_SEL 1 is not known"},
      {compute, packet(0x37, {5U << 8 | 2U << 30, at_low, at_high, 1}), unknown,
       "WRITE_DATA, dword 1: ENGINE_SEL 2 is not known"},
      {compute, packet(0x40, {1 | 5U << 8, at_low, too_high, at_low, at_high}), unknown, "COPY_DATA, dword 3: " + high},
      {compute, packet(0x37, {5U << 8, at_low + 2, at_high, 1}), odd, "WRITE_DATA, dword 2: " + by4},
      {compute, packet(0x37, {0, 0x4'0000, 0, 1}), no_register, "WRITE_DATA, dword 2: no register has that number"},
      {compute, packet(0x37, {0, 0x2E00, 1, 1}), no_register, "WRITE_DATA, dword 2: no register has that number"},
      {compute, packet(0x50, {1, at_low, at_high, at_low, at_high, 64}), unknown, "DMA_DATA, dword 1: " + no_prefetch},
      {compute, packet(0x50, {0, at_low, too_high, at_low, at_high, 64}), unknown,
       "DMA_DATA, dword 3: bits 0x10000 are not known"},
      {compute, packet(0x50, {2U << 29, 5, 0, at_low + 2, at_high, 64}), odd,
       "DMA_DATA, dword 6: a fill that is not of whole dwords"},
      {compute, packet(0x50, {2U << 29, 5, 0, at_low, at_high, 62}), odd,
       "DMA_DATA, dword 6: a fill that is not of whole dwords"},
      {compute, changing(0), unknown, "ATOMIC_MEM, dword 1: atomic operation 0x0 is not known"},
      {compute, changing(0x0F | 1U << 8), unknown, "ATOMIC_MEM, dword 1: command 1 is not known for it"},
      {compute, changing(0x08 | 2U << 8), unknown, "ATOMIC_MEM, dword 1: command 2 is not known for it"},
      {compute, changing(0x0F | 2U << 30), unknown, "ATOMIC_MEM, dword 1: ENGINE_SEL 2 is not known"},
      {compute, changing(0x0F, at_low + 2), unknown, "ATOMIC_MEM, dword 2: bits 0x2 are not known"},
      {compute, changing(0x2F, at_low + 4), odd, "ATOMIC_MEM, dword 2: an address that is not a multiple of its word"},
      {compute, changing(0x08 | 1U << 8, at_low, 5), FaultKind::watchdog,
       "ATOMIC_MEM, dword 6: the value at 0xffff800000200000 never compares equal"},
      {compute, packet(0x22, {at_low, at_high, 0, 1}), FaultKind::overrun,
       "COND_EXEC: skips 1 dwords, past the end of the indirect buffer"},
  };
}

}  // namespace

TEST_CASE("simulator command processor: each refusal says what is wrong, with the dword in question") {
  for (const RefusedPacket& one : refused_packets()) {
    INFO(one.reason);
    Bench bench(Generation::gfx11, one.ring);
    const Dwords before = Bench::sound_state();
    const auto fault = bench.run(before + one.packet);
    REQUIRE(fault);
    CHECK(fault->reason == one.reason);
    CHECK(fault->kind == one.kind);
    CHECK(fault->address == Bench::code + 4 * before.size());
    const std::size_t place = one.reason.find(", dword ");
    CHECK(fault->dword ==
          one.packet[place == std::string::npos ? 0 : static_cast<std::size_t>(one.reason[place + 8] - '0')]);
  }
}

TEST_CASE("simulator command processor: what stands at the edge of a refusal is taken") {
  for (const auto& [ring, stream] :
       {std::pair{Ring::graphics, acquiring(1U << 17 | 5U << 11 | 2U << 14, ~0U, all_of_it, 10 | 1U << 31, 0)},
        {Ring::compute, acquiring(0, ~0U, 0x01FF'FFFF, 10, 0x30)},
        {Ring::compute, acquiring(0, ~0U, all_of_it, 10, 2U << 16 | 1)},
        {Ring::compute, releasing(release_event | 3U << 12 | 2U << 22, 3U << 24)},
        {Ring::compute, releasing(release_event, 1U << 29, at_low + 4)},
        {Ring::compute, releasing(release_event, 3U << 29, at_low + 8)},
        {Ring::graphics, releasing(release_event | 1U << 31, 0)},
        {Ring::compute, changing(0x0F | 1U << 30)},
        {Ring::compute, changing(0x0F, at_low + 4)},
        {Ring::compute, changing(0x08 | 1U << 8)},
        {Ring::compute, packet(0x37, {5U << 8 | 1U << 30, at_low, 0xFFFF'8000, 1})},
        {Ring::compute, packet(0x50, {2U << 29, 5, 0, at_low + 4, at_high, 60})}}) {
    Bench bench(Generation::gfx11, ring);
    const auto fault = bench.run(stream);
    INFO((fault ? fault->reason : std::string()));
    CHECK_FALSE(fault);
  }
}

}  // namespace kiln::simulator
