// The tables of packets, limits and registers: their contents, that they do not contradict themselves, and which
// registers a submission may set.
#include <set>
#include <string_view>

#include <catch2/catch.hpp>

#include "amdgpu_pm4/packets/capabilities.hpp"
#include "amdgpu_pm4/packets/registers.hpp"

namespace kiln::amdgpu_pm4 {

TEST_CASE("pm4: each generation has these packets, registers and limits") {
  std::set<unsigned> expected{0x10, 0x15, 0x16, 0x37, 0x3C, 0x3F, 0x40, 0x46, 0x49, 0x50, 0x58, 0x76, 0x79, 0x9B};
  for (const bool newer : {false, true}) {
    const Generation generation = newer ? Generation::gfx11 : Generation::gfx10_3;
    INFO(to_string(generation));
    const Capabilities& has = capabilities_of(generation);
    if (newer) expected.erase(0x79);  // SET_UCONFIG_REG
    std::set<unsigned> opcodes;
    for (unsigned opcode = 0; opcode < 256; ++opcode) {
      if (has.knows(static_cast<Opcode>(opcode))) opcodes.insert(opcode);
    }
    CHECK(opcodes == expected);
    CHECK(has.generation == generation);
    CHECK(has.shader_engine_registers == (newer ? 8U : 4U));
    CHECK(has.dispatch_interleave == newer);
    CHECK(has.coherence_start_delay == !newer);
    CHECK(has.scratch_registers == newer);
    CHECK(has.scratch_waves_per_engine == newer);
    CHECK(has.scratch_granule == (newer ? 256U : 1024U));
    CHECK(has.scratch_size_bits == (newer ? 15U : 13U));
    CHECK(has.waves_per_simd == 16U);
  }
}

TEST_CASE("pm4: a register has one entry a generation, and fields that do not overlap") {
  for (const Generation generation : {Generation::gfx10_3, Generation::gfx11}) {
    const auto bit = static_cast<std::uint8_t>(1U << column_of(generation));
    std::set<std::uint32_t> addresses;
    std::set<std::string_view> names;
    for (const RegisterInfo& info : all_registers()) {
      if ((info.generations & bit) == 0) continue;
      INFO(info.name);
      CHECK(addresses.insert(info.address).second);
      CHECK(names.insert(info.name).second);
      CHECK(info.owner != RegisterOwner::invalid);
      CHECK(find_register(info.address, generation) == &info);
      std::uint32_t taken = 0;
      for (const Field& field : info.fields) {
        if ((field.generations & bit) == 0) continue;
        CHECK(field.low + field.width <= 32);
        CHECK((taken & field.mask()) == 0);
        taken |= field.mask();
      }
    }
    CHECK(find_register(0xB88C, generation) == nullptr);
    CHECK(find_register(0xB801, generation) == nullptr);
    CHECK(find_register(0x28000, generation) == nullptr);
  }
  for (const std::uint32_t address : {0xB840U, 0x301ECU}) {  // of one generation alone
    REQUIRE(find_register(address, Generation::invalid) != nullptr);
    CHECK(find_register(address, Generation::invalid)->address == address);
  }
}

TEST_CASE("pm4: the allow-list is what a dispatch sets, and no more") {
  CHECK(allowed_bits(0xB810, Generation::gfx11) == ~0U);
  CHECK(allowed_bits(0xB834, Generation::gfx11) == 0xFF);
  CHECK(allowed_bits(0xB850, Generation::gfx11) == 0);  // VMID
  CHECK(allowed_bits(0xB800, Generation::gfx11) == 0);  // comes with the packet
  CHECK(allowed_bits(0xB878, Generation::gfx11) == 0);  // thread trace
  CHECK(allowed_bits(0xB840, Generation::gfx11) == ~0U);
  CHECK(allowed_bits(0xB840, Generation::gfx10_3) == 0);
  CHECK(allowed_bits(0xB8AC, Generation::gfx11) == ~0U);  // SE4's mask
  CHECK(allowed_bits(0xB8AC, Generation::gfx10_3) == 0);  // COMPUTE_RELAUNCH
  CHECK(allowed_bits(0xB860, Generation::gfx10_3) == 0x01FFFFFF);
  CHECK(allowed_bits(0xB860, Generation::gfx11) == 0x07FFFFFF);
  CHECK(allowed_bits(0xB8A0, Generation::gfx10_3) == 0xF);
  CHECK(allowed_bits(0x301EC, Generation::gfx10_3) == ~0U);
  CHECK(allowed_bits(0x301EC, Generation::gfx11) == 0);
  CHECK(allowed_bits(0x30E00, Generation::gfx11) == 0);
  for (const Generation generation : {Generation::gfx10_3, Generation::gfx11}) {
    const ComputeBits& row = allowed_compute_bits(generation);
    for (std::size_t i = 0; i < row.size(); ++i) {
      CHECK(row[i] == allowed_bits(compute_registers + 4 * static_cast<std::uint32_t>(i), generation));
    }
  }
}

}  // namespace kiln::amdgpu_pm4
