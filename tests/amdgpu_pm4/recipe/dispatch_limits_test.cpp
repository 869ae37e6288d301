// Each refusal of a kernel or a place in its words, and the numbers that a dispatch's registers are made of.
#include <array>
#include <catch2/catch.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "amdgpu_pm4/packets/recorded_dispatch.hpp"
#include "recipe/sample.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

using ChangeOfDispatch = std::function<void(KernelCode& kernel, DispatchPlace& place)>;

// What is said of the sample kernel with that change; "recorded" where nothing is.
std::string said_of(const ChangeOfDispatch& change, const DeviceShape& shape = navi31) {
  KernelCode kernel = sample_kernel_gfx11();
  DispatchPlace place = sample_place(kernel, shape);
  change(kernel, place);
  const auto recorded = RecordedDispatch::record(kernel, shape, place);
  return recorded ? "recorded" : recorded.error().text();
}

// A register's value in a dispatch without scratch memory, by its place among the dwords.
constexpr std::size_t rsrc2_at = 7, limits_at = 16;
std::uint32_t dword_of(std::size_t at, const DeviceShape& shape, const ChangeOfDispatch& change) {
  KernelCode kernel = sample_kernel_gfx11();
  DispatchPlace place = sample_place(kernel, shape);
  change(kernel, place);
  const auto recorded = RecordedDispatch::record(kernel, shape, place);
  REQUIRE(recorded);
  return recorded->state()[at];
}

}  // namespace

TEST_CASE("pm4 recipe: each refusal of a kernel names both sides") {
  using K = KernelCode;
  using P = DispatchPlace;
  const std::pair<ChangeOfDispatch, const char*> rows[] = {
      {[](K&, P&) {}, "recorded"},
      {[](K& k, P&) { k.wave_lanes = 64; }, "recorded"},
      {[](K& k, P&) { k.wave_lanes = 0; }, "corrupt: kernel saxpy: waves of 0 lanes, expected 32 or 64"},
      {[](K& k, P&) { k.wave_lanes = 33; }, "corrupt: kernel saxpy: waves of 33 lanes, expected 32 or 64"},
      {[](K& k, P&) { k.rsrc1 |= 1U << 20; }, "unsupported: kernel saxpy: PGM_RSRC1.PRIV is 1, expected 0"},
      {[](K& k, P&) { k.rsrc2 |= 1U << 6; }, "unsupported: kernel saxpy: PGM_RSRC2.TRAP_PRESENT is 1, expected 0"},
      {[](K& k, P&) { k.rsrc2 |= 3U << 15; },
       "corrupt: kernel saxpy: PGM_RSRC2.LDS_SIZE is 3, expected 0: the submitter sets this field"},
      {[](K& k, P&) { k.rsrc1 |= 31; }, "recorded"},
      {[](K& k, P&) { k.rsrc1 |= 32; },
       "corrupt: kernel saxpy: PGM_RSRC1.VGPRS is 32, expected at most 31 for waves of 32 lanes"},
      {[](K& k, P&) { k.rsrc1 |= 63, k.wave_lanes = 64; }, "recorded"},
      {[](K& k, P&) {
         k.user_sgpr_slots.push_back({UserSgpr::queue_pointer, 2, 2});
       },
       "unsupported: kernel saxpy: queue_pointer in user SGPRs is not supported"},
      {[](K& k, P&) {
         k.user_sgpr_slots.push_back({UserSgpr::dispatch_pointer, 2, 2});
       },
       "unsupported: kernel saxpy: dispatch_pointer in user SGPRs is not supported"},
      {[](K& k, P&) {
         k.user_sgpr_slots.push_back({UserSgpr::dispatch_id, 2, 2});
       },
       "unsupported: kernel saxpy: dispatch_id in user SGPRs is not supported"},
      {[](K& k, P&) { k.user_sgpr_slots[0].first = 14; }, "recorded"},
      {[](K& k, P&) { k.user_sgpr_slots[0].first = 15; },
       "corrupt: kernel saxpy: kernarg_pointer in s15 is beyond the 16 user SGPRs"},
      {[](K& k, P&) { k.user_sgprs = 16; }, "recorded"},
      {[](K& k, P&) {
         k.user_sgpr_slots[0] = {UserSgpr::kernarg_pointer, 0, 16};
       },
       "recorded"},
      {[](K& k, P&) { k.user_sgprs = 17; }, "unsupported: kernel saxpy: 17 user SGPRs, expected at most 16"},
      {[](K& k, P&) { k.user_sgpr_slots.clear(); },
       "corrupt: kernel saxpy: 24 bytes of arguments, but no user SGPRs for the argument address"},
      {[](K& k, P&) { k.user_sgpr_slots.clear(), k.kernarg_bytes = 0; }, "recorded"},
      {[](K& k, P&) { k.dynamic_stack = true; },
       "unsupported: kernel saxpy: a stack of unknown depth is not supported"},
      {[](K& k, P&) { k.scratch_bytes = 4; },
       "corrupt: kernel saxpy: PGM_RSRC2.SCRATCH_EN is 0, but the kernel has 4 scratch bytes per lane"},
      {[](K& k, P&) { k.rsrc2 |= 1; },
       "corrupt: kernel saxpy: PGM_RSRC2.SCRATCH_EN is 1, but the kernel has 0 scratch bytes per lane"}};
  for (const auto& [change, text] : rows) CHECK(said_of(change) == text);
  CHECK(said_of([](K&, P&) {}, DeviceShape{}) == "unsupported: kernel saxpy: unknown device generation");
}

TEST_CASE("pm4 recipe: each refusal of a place names both sides") {
  using K = KernelCode;
  using P = DispatchPlace;
  const std::string begin = "invalid_argument: kernel saxpy: ";
  const std::pair<ChangeOfDispatch, std::string> rows[] = {
      {[](K&, P& p) { p.image_va = 0; }, "recorded"},  // the entry is at 256
      {[](K&, P& p) { p.image_va = 1; }, begin + "code address is 257, expected a multiple of 256"},
      {[](K&, P& p) { p.image_va = ~std::uint64_t{0xFF}; }, begin + "code address is 0, expected a multiple of 256"},
      {[](K&, P& p) {
         p.workgroup = {0, 1, 1};
       },
       begin + "workgroup 0x1x1: each size must be 1 to 1024"},
      {[](K&, P& p) {
         p.workgroup = {1, 1, 0};
       },
       begin + "workgroup 1x1x0: each size must be 1 to 1024"},
      {[](K&, P& p) {
         p.workgroup = {1, 1025, 1};
       },
       begin + "workgroup 1x1025x1: each size must be 1 to 1024"},
      {[](K&, P& p) {
         p.workgroup = {1, 1024, 1};
       },
       "recorded"},
      {[](K&, P& p) {
         p.workgroup = {1024, 1024, 1024};
       },
       begin + "workgroup 1024x1024x1024 has 1073741824 lanes, expected at most 1024"},
      {[](K&, P& p) {
         p.workgroup = {41, 5, 5};
       },
       begin + "workgroup 41x5x5 has 1025 lanes, expected at most 1024"},
      {[](K& k, P&) { k.max_workgroup_lanes = 64; }, "recorded"},
      {[](K& k, P&) { k.max_workgroup_lanes = 63; }, begin + "workgroup 64x1x1 has 64 lanes, expected at most 63"},
      {[](K& k, P& p) {
         k.max_workgroup_lanes = 0, p.workgroup = {1024, 1, 1};
       },
       "recorded"},
      {[](K& k, P& p) {
         k.max_workgroup_lanes = 2000, p.workgroup = {1024, 2, 1};
       },
       begin + "workgroup 1024x2x1 has 2048 lanes, expected at most 1024"},
      {[](K& k, P&) {
         k.required_workgroup = {64, 1, 1};
       },
       "recorded"},
      {[](K& k, P&) {
         k.required_workgroup = {64, 1, 2};
       },
       begin + "workgroup 64x1x1, expected 64x1x2"},
      {[](K& k, P& p) { k.lds_bytes = 65535, p.dynamic_lds_bytes = 1; }, "recorded"},
      {[](K& k, P& p) { k.lds_bytes = 65536, p.dynamic_lds_bytes = 1; },
       begin + "65537 bytes of LDS, expected at most 65536"},
      {[](K& k, P& p) { k.lds_bytes = 1, p.dynamic_lds_bytes = 0xFFFFFFFF; },
       begin + "4294967296 bytes of LDS, expected at most 65536"},
      {[](K&, P& p) { p.scratch.tmpring_size = 1; }, begin + "a scratch ring is set, but the kernel has no scratch"}};
  for (const auto& [change, text] : rows) CHECK(said_of(change) == text);
}

TEST_CASE("pm4 recipe: local memory is counted in units of 512 bytes, its own and the added ones together") {
  struct Row {
    std::uint32_t own, added, units;
  };
  for (const Row& row : {Row{0, 0, 0},
                         {1, 0, 1},
                         {0, 1, 1},
                         {512, 0, 1},
                         {513, 0, 2},
                         {511, 1, 1},
                         {512, 1, 2},
                         {1024, 512, 3},
                         {65536, 0, 128}}) {
    INFO(row.own << " and " << row.added);
    CHECK(dword_of(rsrc2_at, navi31, [&row](KernelCode& kernel, DispatchPlace& place) {
            kernel.lds_bytes = row.own;
            place.dynamic_lds_bytes = row.added;
          }) == (0x9E | row.units << 15));
  }
}

TEST_CASE("pm4 recipe: the limits register by the waves of a workgroup and the units of an engine") {
  struct Row {
    DeviceShape shape;
    std::uint32_t lanes, value;
  };
  const DeviceShape odd{Generation::gfx11, 6, 90}, one{Generation::gfx11, 1, 90}, none{Generation::gfx11, 0, 90};
  const Row rows[] = {{navi31, 1, 0x01000000},
                      {navi31, 32, 0x01000000},
                      {navi31, 33, 0},
                      {navi31, 64, 0},
                      {navi31, 96, 0},
                      {navi31, 97, 0x00400000},
                      {navi31, 128, 0x00400000},
                      {navi31, 129, 0},
                      {navi31, 256, 0x00400000},
                      {odd, 32, 0x01800000},
                      {odd, 64, 0},
                      {odd, 128, 0x00400000},
                      {one, 32, 0x01800000},
                      {none, 32, 0x01000000}};
  for (const Row& row : rows) {
    INFO(row.shape.shader_engines << " engines, " << row.lanes << " lanes");
    CHECK(dword_of(limits_at, row.shape, [&row](KernelCode&, DispatchPlace& place) {
            place.workgroup = {1, 1, row.lanes};
          }) == row.value);
  }
}

TEST_CASE("pm4 recipe: a scratch ring by bytes a lane, up to the largest slot") {
  struct Row {
    DeviceShape shape;
    std::uint32_t bytes, lanes, waves, granules;
    std::uint64_t ring;
  };
  const DeviceShape small{Generation::gfx11, 0, 2}, empty{Generation::gfx11, 6, 0}, older{Generation::gfx10_3, 8, 127};
  const DeviceShape oldest{Generation::gfx10_3, 8, 128};
  const Row rows[] = {{navi31, 1, 32, 512, 1, 786432},
                      {navi31, 8, 32, 512, 1, 786432},
                      {navi31, 9, 32, 512, 3, 2359296},
                      {navi31, 16, 32, 512, 3, 2359296},
                      {navi31, 24, 32, 512, 3, 2359296},
                      {navi31, 25, 32, 512, 5, 3932160},
                      {navi31, 4, 64, 512, 1, 786432},
                      {navi31, 5, 64, 512, 3, 2359296},
                      {navi31, 262136, 32, 512, 32767, 25769017344},
                      {small, 1, 32, 64, 1, 16384},
                      {empty, 1, 32, 1, 1, 1536},
                      {navi21, 32, 32, 2560, 1, 2621440},
                      {navi21, 33, 32, 2560, 3, 7864320},
                      {older, 1, 32, 4064, 1, 4161536},
                      {oldest, 1, 32, 4095, 1, 4193280},
                      {navi21, 262112, 32, 2560, 8191, 21472215040}};
  for (const Row& row : rows) {
    INFO(row.shape.compute_units << " units, " << row.bytes << " bytes a lane");
    const auto ring = scratch_ring(row.shape, row.bytes, row.lanes);
    REQUIRE(ring);
    CHECK(ring->tmpring_size == (row.waves | row.granules << 12));
    CHECK(ring->bytes == row.ring);
  }
  CHECK(scratch_ring(navi31, 262137, 32).error().text() ==
        "unsupported: scratch of 262137 bytes per lane: a wave of 32 lanes needs 8388384 bytes, expected at most "
        "8388352");
  CHECK(scratch_ring(navi21, 262113, 32).error().text() ==
        "unsupported: scratch of 262113 bytes per lane: a wave of 32 lanes needs 8387616 bytes, expected at most "
        "8387584");
}

TEST_CASE("pm4 recipe: the resource of scratch memory has the address and the wave's stride") {
  using Words = std::array<std::uint32_t, 4>;
  CHECK(scratch_resource(0x123456789A00, 32) == Words{0x56789A00, 0x80001234, 0xFFFFFFFF, 0x31C16000});
  CHECK(scratch_resource(0xFFFF800110000000, 64) == Words{0x10000000, 0x80008001, 0xFFFFFFFF, 0x31E16000});
}

TEST_CASE("pm4 recipe: what a workgroup asks of one SIMD, and whether that fits") {
  constexpr std::uint32_t pair = 1U << 29;  // of compute units
  struct Row {
    std::uint32_t rsrc1, rsrc3, lanes, wave_lanes;
    VectorRegisters registers;
    std::uint32_t waves, vgprs;
  };
  constexpr VectorRegisters more{1536, 24}, fewer{1024, 16};
  const Row rows[] = {
      {0, 0, 1, 32, more, 1, 24},      {0, 0, 64, 32, more, 1, 24},       {0, 0, 65, 32, more, 2, 48},
      {0, 0, 1024, 32, more, 16, 384}, {pair, 0, 1024, 32, more, 8, 192}, {pair, 0, 128, 32, more, 1, 24},
      {pair, 0, 129, 32, more, 2, 48}, {pair, 0, 1024, 64, more, 4, 96},  {2, 0, 64, 32, more, 1, 24},
      {3, 0, 64, 32, more, 1, 48},     {1, 0, 64, 32, fewer, 1, 16},      {2, 0, 64, 32, fewer, 1, 32},
      {63, 0, 128, 64, fewer, 1, 512}, {1, 2, 128, 64, fewer, 1, 32}};
  for (const Row& row : rows) {
    INFO(row.rsrc1 << ", " << row.lanes << " lanes");
    const GroupLoad load = group_load(row.rsrc1, row.rsrc3, row.lanes, row.wave_lanes, row.registers);
    CHECK(load.waves == row.waves);
    CHECK(load.vgprs == row.vgprs);
  }
  const Capabilities& gfx11 = capabilities_of(Generation::gfx11);
  CHECK(fits({16, 1536}, gfx11, more));
  CHECK_FALSE(fits({17, 1536}, gfx11, more));
  CHECK_FALSE(fits({16, 1537}, gfx11, more));
  CHECK(most_vgpr_granules(32) == 31);
  CHECK(most_vgpr_granules(64) == 63);
}

}  // namespace kiln::amdgpu_pm4
