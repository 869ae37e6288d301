// The table of registers: that it does not contradict itself, and whose registers are a submitter's.
#include "amdgpu_pm4/packets/registers/register_table.hpp"

#include <catch2/catch.hpp>
#include <set>
#include <string>

namespace kiln::amdgpu_pm4 {

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
