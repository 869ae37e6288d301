// Each encoder against dwords written by hand from the packets' descriptions, and what it does where nothing fits.
#include "amdgpu_pm4/packets/encoders.hpp"

#include <catch2/catch.hpp>
#include <vector>

#include "amdgpu_pm4/packets/capabilities.hpp"
#include "amdgpu_pm4/packets/command_stream.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

using Dwords = std::vector<std::uint32_t>;

// What `emit` writes into ample room.
template <class Emit>
Dwords written_by(const Emit& emit) {
  Dwords room(64, 0xDEADBEEF);
  PacketWriter out(room);
  REQUIRE(emit(out));
  for (std::size_t i = out.size(); i < room.size(); ++i) REQUIRE(room[i] == 0xDEADBEEF);
  return {out.written().begin(), out.written().end()};
}

// Into every room that is too small: false, and not one dword changed.
template <class Emit>
void needs_room(const Emit& emit) {
  const std::size_t whole = written_by(emit).size();
  for (std::size_t size = 0; size < whole; ++size) {
    Dwords room(whole + 1, 0xDEADBEEF);
    PacketWriter out{std::span(room).first(size)};
    REQUIRE_FALSE(emit(out));
    REQUIRE(out.size() == 0);
    REQUIRE(room == Dwords(whole + 1, 0xDEADBEEF));
  }
}

template <class Emit>
void check(const Emit& emit, const Dwords& expected) {
  CHECK(written_by(emit) == expected);
  needs_room(emit);
}

constexpr std::uint64_t address = 0xFFFF800123456780;

}  // namespace

TEST_CASE("pm4: packets are the dwords that their descriptions say") {
  const std::array<std::uint32_t, 3> three{1, 2, 3};
  // type 3, COUNT 3, SET_SH_REG, compute; (0xB810 - 0xB000) / 4
  check([&](PacketWriter& out) { return emit_set_sh_reg(out, Register::start_x, three); },
        {0xC0037602, 0x00000204, 1, 2, 3});
  check([](PacketWriter& out) { return emit_set_sh_reg(out, Register::pgm_rsrc3, 0x3F0); },
        {0xC0017602, 0x00000228, 0x3F0});
  // INDEX 3 in [31:28]
  check(
      [](PacketWriter& out) {
        return emit_set_sh_reg_index(out, Register::static_thread_mgmt_se0, std::array{~0U, ~0U});
      },
      {0xC0029B02, 0x30000216, 0xFFFFFFFF, 0xFFFFFFFF});
  // (0x301EC - 0x30000) / 4
  check([](PacketWriter& out) { return emit_set_uconfig_reg(out, Register::cp_coher_start_delay, 0x20); },
        {0xC0017902, 0x0000007B, 0x20});
  check(
      [](PacketWriter& out) {
        return emit_dispatch_direct(out, {7, 8, 9}, 0x8045);
      },
      {0xC0031502, 7, 8, 9, 0x00008045});
  check([](PacketWriter& out) { return emit_dispatch_indirect(out, address, 0x45); },
        {0xC0021602, 0x23456780, 0xFFFF8001, 0x00000045});
  // all of memory, polled every 10 clocks
  check([](PacketWriter& out) { return emit_acquire_mem(out, acquire_after_host); },
        {0xC0065802, 0, 0xFFFFFFFF, 0x00FFFFFF, 0, 0, 0x0000000A, 0x0000C3B1});
  check([](PacketWriter& out) { return emit_acquire_mem(out, acquire_after_dispatch); },
        {0xC0065802, 0, 0xFFFFFFFF, 0x00FFFFFF, 0, 0, 0x0000000A, 0x00000380});
  // CACHE_FLUSH_AND_INV_TS, index 5, GL2_WB GLM_WB GLM_INV SEQ=1; DATA_SEL 2, INT_SEL 3
  check(
      [](PacketWriter& out) {
        return emit_release_mem(
            out, {Event::cache_flush_and_inv_ts, release_to_host, ReleasedData::value_64, address, 0x1122334455667788});
      },
      {0xC0064902, 0x00603514, 0x43000000, 0x23456780, 0xFFFF8001, 0x55667788, 0x11223344, 0});
  // BOTTOM_OF_PIPE_TS, index 5; DATA_SEL 3, INT_SEL 3
  check(
      [](PacketWriter& out) {
        return emit_release_mem(out, {Event::bottom_of_pipe_ts, 0, ReleasedData::clock, address, 0});
      },
      {0xC0064902, 0x00000528, 0x63000000, 0x23456780, 0xFFFF8001, 0, 0, 0});
  check([](PacketWriter& out) { return emit_event_write(out, Event::cs_partial_flush, event_index_flush); },
        {0xC0004602, 0x00000407});
  // DST_SEL 5 in [11:8], WR_CONFIRM in 20
  check([&](PacketWriter& out) { return emit_write_data(out, address, three); },
        {0xC0053702, 0x00100500, 0x23456780, 0xFFFF8001, 1, 2, 3});
  // SRC_SEL 9, DST_SEL 5, COUNT_SEL in 16, WR_CONFIRM in 20
  check(
      [](PacketWriter& out) {
        return emit_copy_data(out, {CopySource::clock, 0, address, CopyBits::b64});
      },
      {0xC0044002, 0x00110509, 0, 0, 0x23456780, 0xFFFF8001});
  check(
      [](PacketWriter& out) {
        return emit_copy_data(out, {CopySource::memory, 0x1000, address, CopyBits::b32});
      },
      {0xC0044002, 0x00100501, 0x1000, 0, 0x23456780, 0xFFFF8001});
  // CP_SYNC in 31, SRC_SEL 3 in [30:29], DST_SEL 3 in [21:20]
  check([](PacketWriter& out) { return emit_dma_copy(out, address, 0x2000, 4096); },
        {0xC0055002, 0xE0300000, 0x2000, 0, 0x23456780, 0xFFFF8001, 4096});
  // SRC_SEL 2: the source's place holds the value
  check([](PacketWriter& out) { return emit_dma_fill(out, address, 0xABCD, 64); },
        {0xC0055002, 0xC0300000, 0xABCD, 0, 0x23456780, 0xFFFF8001, 64});
  // >= (5) in memory (1 in [5:4]), every 4 clocks
  check(
      [](PacketWriter& out) {
        return emit_wait_reg_mem(out, {Compare::not_less, address, 17, 0xFFFF});
      },
      {0xC0053C02, 0x00000015, 0x23456780, 0xFFFF8001, 17, 0xFFFF, 4});
  // CHAIN in 20, VALID in 23
  check([](PacketWriter& out) { return emit_chain(out, address, 0x1238); },
        {0xC0023F02, 0x23456780, 0xFFFF8001, 0x00901238});
  check([&](PacketWriter& out) { return emit_nop(out, three); }, {0xC0021002, 1, 2, 3});
  check([](PacketWriter& out) { return emit_fillers(out, 3); }, {0xFFFF1000, 0xFFFF1000, 0xFFFF1000});
}

TEST_CASE("pm4: what does not fit a field is not written") {
  Dwords room(0x5000);
  PacketWriter out(room);
  CHECK_FALSE(emit_chain(out, address, 0x100000));  // 20 bits of size
  CHECK_FALSE(emit_dma_copy(out, address, 0, 1U << 26));
  CHECK_FALSE(emit_dma_fill(out, address, 0, 1U << 26));
  CHECK_FALSE(emit_event_write(out, Event::cs_done, 16));
  CHECK_FALSE(emit_acquire_mem(out, 1U << 19));
  CHECK_FALSE(
      emit_release_mem(out, {Event::bottom_of_pipe_ts, 0x100, ReleasedData::none, 0, 0}));  // EVENT_INDEX's bits
  CHECK_FALSE(emit_set_sh_reg(out, Register::cp_coher_start_delay, 1));                     // another space
  CHECK_FALSE(emit_set_uconfig_reg(out, Register::pgm_lo, 1));
  CHECK_FALSE(emit_set_sh_reg(out, static_cast<Register>(0xB812), 1));
  CHECK_FALSE(emit_set_sh_reg(out, Register::start_x, std::span<const std::uint32_t>()));
  CHECK_FALSE(emit_set_sh_reg(out, static_cast<Register>(0xBFFC), std::array{1U, 2U}));  // past the space's end
  CHECK(emit_set_sh_reg(out, static_cast<Register>(0xBFFC), 1));
  CHECK_FALSE(emit_write_data(out, address, std::span<const std::uint32_t>()));
  CHECK_FALSE(emit_nop(out, std::span<const std::uint32_t>()));
  // A count of 0x3FFF would be the NOP without a body.
  CHECK_FALSE(emit_nop(out, Dwords(0x4000)));
  CHECK(emit_nop(out, Dwords(0x3FFF)));
  CHECK(packet_count(room[3]) == 0x3FFE);
}

}  // namespace kiln::amdgpu_pm4
