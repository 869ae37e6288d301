// One dispatch's dwords, for both generations; what is patched; and kernels that are refused.
#include "amdgpu_pm4/packets/recorded_dispatch.hpp"

#include <array>
#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <utility>

#include "amdgpu_pm4/packets/stream_text.hpp"
#include "recipe/sample.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

using Dwords = std::vector<std::uint32_t>;

RecordedDispatch recorded(const KernelCode& kernel, const DeviceShape& shape) {
  auto result = RecordedDispatch::record(kernel, shape, sample_place(kernel, shape));
  INFO((result ? "" : result.error().text()));
  REQUIRE(result.has_value());
  return *result;
}

Dwords appended(const RecordedDispatch& dispatch, const DispatchArguments& arguments) {
  Dwords room(64);
  PacketWriter out(room);
  REQUIRE(dispatch.append(out, arguments));
  return {out.written().begin(), out.written().end()};
}

Status refusal(const KernelCode& kernel, const DispatchPlace& place, const DeviceShape& shape = navi31) {
  const auto result = RecordedDispatch::record(kernel, shape, place);
  REQUIRE_FALSE(result.has_value());
  CHECK_THAT(result.error().message, Catch::StartsWith("kernel saxpy: "));
  return result.error();
}

std::uint32_t register_in(const Dwords& stream, std::string_view name) {
  PacketReader reader(stream);
  for (PacketView packet; reader.next(packet);) {
    for (const WordDescription& word : describe(packet, Generation::gfx11).words) {
      if (word.name == name) return word.value;
    }
  }
  FAIL("no " << name);
  return 0;
}

}  // namespace

TEST_CASE("pm4 recipe: a dispatch on gfx11 is these dwords") {
  KernelCode kernel = sample_kernel_gfx11();
  kernel.lds_bytes = 1000;
  const Dwords expected{0xC0027602, 0x20C, 0x01002001, 0x80,        // PGM: bits 39 to 8 of 0xFFFF800100200100, 47 to 40
                        0xC0027602, 0x212, 0x60AF0080, 0x0001009E,  // RSRC1, RSRC2 with 2 units of LDS
                        0xC0017602, 0x228, 0x00000010,              // RSRC3
                        0xC0017602, 0x218, 0,                       // TMPRING_SIZE
                        0xC0017602, 0x215, 0,                       // RESOURCE_LIMITS: 2 waves
                        0xC0037602, 0x207, 64,         1,          1,  // NUM_THREAD
                        0xC0107602, 0x240, 0x00300040, 0xFFFF8001, 0, 0, 0,          0,  0,  0,  0,         0,
                        0,          0,     0,          0,          0, 0, 0xC0031502, 10, 11, 12, 0x00008045};
  CHECK(appended(recorded(kernel, navi31), {sample_kernarg_va, {10, 11, 12}, {}}) == expected);
}

TEST_CASE("pm4 recipe: wave64, whole quads of waves and single waves") {
  KernelCode kernel = sample_kernel_gfx11();
  kernel.wave_lanes = 64;
  DispatchPlace place = sample_place(kernel, navi31);
  const auto stream = [&](const DeviceShape& shape) {
    const auto result = RecordedDispatch::record(kernel, shape, place);
    REQUIRE(result.has_value());
    return appended(*result, {sample_kernarg_va, {1, 1, 1}, {}});
  };
  CHECK(stream(navi31).back() == 0x45);
  CHECK(register_in(stream(navi31), "COMPUTE_RESOURCE_LIMITS") == 0x01000000);  // one wave: CU_GROUP_COUNT 1
  CHECK(register_in(stream({Generation::gfx11, 6, 90}), "COMPUTE_RESOURCE_LIMITS") == 0x01800000);  // 15 CUs an engine
  place.workgroup = {16, 16, 1};
  CHECK(register_in(stream(navi31), "COMPUTE_RESOURCE_LIMITS") == 0x00400000);  // SIMD_DEST_CNTL
  CHECK(register_in(stream(navi31), "COMPUTE_NUM_THREAD_Y") == 16);
}

TEST_CASE("pm4 recipe: scratch by registers on gfx11, by user SGPRs on gfx10.3") {
  const Dwords gfx11 =
      appended(recorded(with_scratch(sample_kernel_gfx11(), 260), navi31), {sample_kernarg_va, {1, 1, 1}, {}});
  CHECK(register_in(gfx11, "COMPUTE_DISPATCH_SCRATCH_BASE_LO") == 0x01100000);
  CHECK(register_in(gfx11, "COMPUTE_DISPATCH_SCRATCH_BASE_HI") == 0x80);
  // 260 * 32 = 8320 bytes: 33 granules of 256, odd already; 96 * 32 waves over 6 engines
  CHECK(register_in(gfx11, "COMPUTE_TMPRING_SIZE") == (512U | 33U << 12));
  CHECK((register_in(gfx11, "COMPUTE_PGM_RSRC2") & 1) == 1);

  const Dwords gfx10 =
      appended(recorded(with_scratch(sample_kernel_gfx10_3(), 260), navi21), {sample_kernarg_va, {1, 1, 1}, {}});
  // 8320 bytes: 9 granules of 1 KiB; 80 * 32 waves
  CHECK(register_in(gfx10, "COMPUTE_TMPRING_SIZE") == (2560U | 9U << 12));
  CHECK(register_in(gfx10, "COMPUTE_USER_DATA_0") == 0x10000000);
  CHECK(register_in(gfx10, "COMPUTE_USER_DATA_1") == 0x80008001);  // swizzled
  CHECK(register_in(gfx10, "COMPUTE_USER_DATA_2") == 0xFFFFFFFF);
  CHECK(register_in(gfx10, "COMPUTE_USER_DATA_3") == 0x31C16000);  // 32_FLOAT, stride 32, TID, level, raw bounds
  const Dwords bare = appended(recorded(sample_kernel_gfx10_3(), navi21), {sample_kernarg_va, {1, 1, 1}, {}});
  CHECK(register_in(bare, "COMPUTE_USER_DATA_1") == 0);  // no scratch, no resource
  CHECK(register_in(gfx10, "COMPUTE_USER_DATA_4") == 0x00300040);
  CHECK(register_in(gfx10, "COMPUTE_USER_DATA_5") == 0xFFFF8001);
  CHECK(register_in(gfx10, "COMPUTE_USER_DATA_6") == 0x10000000);
  CHECK(register_in(gfx10, "COMPUTE_USER_DATA_7") == 0xFFFF8001);
}

TEST_CASE("pm4 recipe: user SGPRs hold what their slots say, to the last of sixteen") {
  KernelCode kernel = with_scratch(sample_kernel_gfx11(), 260);
  kernel.user_sgpr_slots = {{UserSgpr::kernarg_pointer, 14, 2},
                            {UserSgpr::private_segment_size, 3, 1},
                            {UserSgpr::private_segment_buffer, 8, 4}};
  const Dwords stream = appended(recorded(kernel, navi31), {sample_kernarg_va, {1, 1, 1}, {}});
  CHECK(register_in(stream, "COMPUTE_USER_DATA_3") == 260);
  CHECK(register_in(stream, "COMPUTE_USER_DATA_9") == 0x80008001);
  CHECK(register_in(stream, "COMPUTE_USER_DATA_2") == 0);
  CHECK(register_in(stream, "COMPUTE_USER_DATA_4") == 0);
  CHECK(register_in(stream, "COMPUTE_USER_DATA_14") == 0x00300040);
  CHECK(register_in(stream, "COMPUTE_USER_DATA_15") == 0xFFFF8001);
  const DispatchPlace place = sample_place(kernel, navi31);
  for (const auto& [first, count] : {std::pair(15U, 2U), {16, 1}, {0, 17}}) {
    CAPTURE(first, count);
    kernel.user_sgpr_slots = {{UserSgpr::kernarg_pointer, first, count}};
    CHECK_THAT(refusal(kernel, place).message, Catch::Contains("is beyond the 16 user SGPRs"));
  }
  // Without arguments there is no address to patch.
  kernel.kernarg_bytes = 0;
  kernel.user_sgpr_slots = {};
  const Dwords bare = appended(recorded(kernel, navi31), {sample_kernarg_va, {1, 1, 1}, {}});
  CHECK(register_in(bare, "COMPUTE_USER_DATA_0") == 0);
  Dwords room(64);
  PacketWriter again(room);
  REQUIRE(recorded(kernel, navi31).append_again(again, {sample_kernarg_va, {4, 5, 6}, {}}));
  CHECK(Dwords(again.written().begin(), again.written().end()) == Dwords{0xC0031502, 4, 5, 6, 0x8045});
}

TEST_CASE("pm4 recipe: a ring holds every wave of the device") {
  const auto ring = scratch_ring(navi31, 260, 32);
  REQUIRE(ring.has_value());
  CHECK(ring->bytes == std::uint64_t{33} * 256 * 512 * 6);
  CHECK(scratch_slot_bytes(capabilities_of(Generation::gfx11), ring->tmpring_size) == 33 * 256);
  const auto even = scratch_ring(navi31, 256, 32);  // 32 granules: made odd
  REQUIRE(even.has_value());
  CHECK(scratch_slot_bytes(capabilities_of(Generation::gfx11), even->tmpring_size) == 33 * 256);
  const auto huge = scratch_ring(navi31, 1 << 20, 32);
  REQUIRE_FALSE(huge.has_value());
  CHECK(huge.error().code == StatusCode::unsupported);
  CHECK_THAT(huge.error().message, Catch::Contains("33554432") && Catch::Contains("8388352"));
  CHECK((scratch_ring({Generation::gfx10_3, 8, 500}, 4, 32)->tmpring_size & 0xFFF) ==
        0xFFF);  // as many as it can count
}

TEST_CASE("pm4 recipe: only what differs is sent again") {
  const RecordedDispatch dispatch = recorded(sample_kernel_gfx10_3(), navi21);
  Dwords room(64);
  PacketWriter out(room);
  REQUIRE(dispatch.append_again(out, {0x123450, {4, 5, 6}, {}}));
  CHECK(Dwords(out.written().begin(), out.written().end()) ==
        Dwords{0xC0027602, 0x244, 0x123450, 0, 0xC0031502, 4, 5, 6, 0x8045});
  PacketWriter indirect(room);
  REQUIRE(dispatch.append_again(indirect, {0x123450, {}, 0x8800}));
  CHECK(Dwords(indirect.written().begin(), indirect.written().end()) ==
        Dwords{0xC0027602, 0x244, 0x123450, 0, 0xC0021602, 0x8800, 0, 0x8045});
  for (std::size_t size = 0; size < 9; ++size) {
    PacketWriter small{std::span(room).first(size)};
    CHECK_FALSE(dispatch.append_again(small, {0x123450, {4, 5, 6}, {}}));
    CHECK_FALSE(dispatch.append(small, {0x123450, {4, 5, 6}, {}}));
    CHECK(small.size() == 0);
  }
  PacketWriter exact{std::span(room).first(9)};
  CHECK(dispatch.append_again(exact, {0x123450, {4, 5, 6}, {}}));
  const std::size_t whole = dispatch.state().size() + 5;
  PacketWriter tight{std::span(room).first(whole - 1)}, enough{std::span(room).first(whole)};
  CHECK_FALSE(dispatch.append(tight, {0x123450, {4, 5, 6}, {}}));
  CHECK(tight.size() == 0);
  CHECK(dispatch.append(enough, {0x123450, {4, 5, 6}, {}}));
}

TEST_CASE("pm4 recipe: kernels and places that would hang are refused by name") {
  const KernelCode good = sample_kernel_gfx11();
  const DispatchPlace place = sample_place(good, navi31);
  const auto with = [&](auto change) {
    KernelCode kernel = good;
    change(kernel);
    return refusal(kernel, place);
  };
  const auto at = [&](auto change) {
    DispatchPlace other = place;
    change(other);
    return refusal(good, other);
  };
  CHECK(with([](KernelCode& k) { k.wave_lanes = 16; }).code == StatusCode::corrupt);
  CHECK(with([](KernelCode& k) { k.rsrc1 |= 1U << 20; }).code == StatusCode::unsupported);
  CHECK(with([](KernelCode& k) { k.rsrc2 |= 1U << 6; }).code == StatusCode::unsupported);
  CHECK(with([](KernelCode& k) { k.rsrc2 |= 1U << 15; }).code == StatusCode::corrupt);
  CHECK(with([](KernelCode& k) { k.rsrc1 |= 32; }).code == StatusCode::corrupt);
  CHECK_THAT(with([](KernelCode& k) {
               k.user_sgpr_slots.push_back({UserSgpr::queue_pointer, 2, 2});
             }).message,
             Catch::Contains("queue_pointer"));
  CHECK(with([](KernelCode& k) { k.user_sgpr_slots[0].first = 15; }).code == StatusCode::corrupt);
  CHECK(with([](KernelCode& k) { k.user_sgprs = 17; }).code == StatusCode::unsupported);
  CHECK(with([](KernelCode& k) { k.user_sgpr_slots.clear(); }).code == StatusCode::corrupt);
  CHECK(with([](KernelCode& k) { k.required_workgroup = {32, 2, 1}; }).code == StatusCode::invalid_argument);
  CHECK(with([](KernelCode& k) { k.max_workgroup_lanes = 32; }).code == StatusCode::invalid_argument);
  CHECK(with([](KernelCode& k) { k.lds_bytes = 65537; }).code == StatusCode::invalid_argument);
  CHECK(with([](KernelCode& k) { k.dynamic_stack = true; }).code == StatusCode::unsupported);
  CHECK(with([](KernelCode& k) { k.scratch_bytes = 4; }).code == StatusCode::corrupt);
  CHECK(with([](KernelCode& k) { k.rsrc2 |= 1; }).code == StatusCode::corrupt);
  CHECK(with([](KernelCode& k) { k = with_scratch(k, 16); }).code == StatusCode::invalid_argument);
  CHECK(at([](DispatchPlace& p) { p.image_va += 4; }).code == StatusCode::invalid_argument);
  CHECK(at([](DispatchPlace& p) { p.workgroup = {0, 1, 1}; }).code == StatusCode::invalid_argument);
  CHECK(at([](DispatchPlace& p) { p.workgroup = {1025, 1, 1}; }).code == StatusCode::invalid_argument);
  CHECK(at([](DispatchPlace& p) { p.workgroup = {64, 32, 1}; }).code == StatusCode::invalid_argument);
  CHECK(at([](DispatchPlace& p) { p.dynamic_lds_bytes = 65537; }).code == StatusCode::invalid_argument);
  CHECK(at([](DispatchPlace& p) { p.scratch.tmpring_size = 1; }).code == StatusCode::invalid_argument);
  CHECK(refusal(good, place, {}).code == StatusCode::unsupported);
  // A ring made for less.
  DispatchPlace shallow = sample_place(with_scratch(good, 16), navi31);
  CHECK_THAT(refusal(with_scratch(good, 64), shallow).message, Catch::Contains("2048") && Catch::Contains("768"));
  shallow.scratch_va += 4;
  CHECK(refusal(with_scratch(good, 16), shallow).code == StatusCode::invalid_argument);
}

TEST_CASE("pm4 recipe: a slot of the scratch ring as large as a wave's scratch is enough, and no smaller one") {
  struct Slot {
    DeviceShape shape;
    std::uint32_t lanes, bytes_per_lane, granules;
    const char* why;  // with one dword more a lane
  };
  const Slot slots[] = {
      {navi31, 32, 8, 1, "a slot of the scratch ring has 256 bytes, expected at least 384 for a wave"},
      {navi31, 32, 24, 3, "a slot of the scratch ring has 768 bytes, expected at least 896 for a wave"},
      {navi31, 64, 4, 1, "a slot of the scratch ring has 256 bytes, expected at least 512 for a wave"},
      {navi21, 32, 32, 1, "a slot of the scratch ring has 1024 bytes, expected at least 1152 for a wave"},
      {navi21, 32, 96, 3, "a slot of the scratch ring has 3072 bytes, expected at least 3200 for a wave"},
      {navi21, 64, 16, 1, "a slot of the scratch ring has 1024 bytes, expected at least 1280 for a wave"}};
  for (const Slot& slot : slots) {
    CAPTURE(to_string(slot.shape.generation), slot.lanes, slot.bytes_per_lane);
    const bool older = slot.shape.generation == Generation::gfx10_3;
    KernelCode kernel = with_scratch(older ? sample_kernel_gfx10_3() : sample_kernel_gfx11(), slot.bytes_per_lane);
    kernel.wave_lanes = slot.lanes;
    const DispatchPlace place = sample_place(kernel, slot.shape);
    const Dwords stream = appended(recorded(kernel, slot.shape), {sample_kernarg_va, {1, 1, 1}, {}});
    CHECK((register_in(stream, "COMPUTE_TMPRING_SIZE") >> 12) == slot.granules);
    kernel.scratch_bytes += 4;
    CHECK(refusal(kernel, place, slot.shape).message == std::string("kernel saxpy: ") + slot.why);
    kernel.scratch_bytes -= 4;
    DispatchPlace nowhere = place;
    nowhere.scratch_va = 0;
    CHECK(refusal(kernel, nowhere, slot.shape).message ==
          "kernel saxpy: scratch address is 0, expected a multiple of 256");
  }
}

TEST_CASE("pm4 recipe: a kernel and a place at the limits are recorded") {
  const KernelCode plain = sample_kernel_gfx11();
  const auto stream = [](const KernelCode& kernel, const DispatchPlace& place) {
    const auto result = RecordedDispatch::record(kernel, navi31, place);
    INFO((result ? "" : result.error().text()));
    REQUIRE(result.has_value());
    return appended(*result, {sample_kernarg_va, {1, 1, 1}, {}});
  };
  DispatchPlace place = sample_place(plain, navi31);
  for (const std::array<std::uint32_t, 3>& workgroup :
       {std::array<std::uint32_t, 3>{1024, 1, 1}, std::array<std::uint32_t, 3>{1, 1024, 1},
        std::array<std::uint32_t, 3>{8, 2, 64}}) {
    place.workgroup = workgroup;
    const Dwords dwords = stream(plain, place);
    CHECK(register_in(dwords, "COMPUTE_NUM_THREAD_X") == workgroup[0]);
    CHECK(register_in(dwords, "COMPUTE_NUM_THREAD_Y") == workgroup[1]);
    CHECK(register_in(dwords, "COMPUTE_NUM_THREAD_Z") == workgroup[2]);
  }
  KernelCode exact = plain;
  exact.max_workgroup_lanes = 64;
  exact.required_workgroup = {16, 4, 1};
  place.workgroup = {16, 4, 1};
  CHECK(register_in(stream(exact, place), "COMPUTE_NUM_THREAD_X") == 16);
  KernelCode full = plain;
  full.lds_bytes = 65024;
  place.dynamic_lds_bytes = 512;  // together 64 KiB
  CHECK(register_in(stream(full, place), "COMPUTE_PGM_RSRC2") == (0x9EU | 128U << 15));
  KernelCode last = plain;
  last.user_sgprs = 16;
  last.user_sgpr_slots = {{UserSgpr::kernarg_pointer, 14, 2}};
  const Dwords dwords = stream(last, sample_place(last, navi31));
  CHECK(register_in(dwords, "COMPUTE_USER_DATA_13") == 0);
  CHECK(register_in(dwords, "COMPUTE_USER_DATA_14") == 0x00300040);
  CHECK(register_in(dwords, "COMPUTE_USER_DATA_15") == 0xFFFF8001);
}

TEST_CASE("pm4 recipe: a workgroup that the vector registers of the chip do not hold would never start") {
  KernelCode large = sample_kernel_gfx11();
  large.rsrc1 |= 31;  // waves of 256 registers, on the 4 SIMDs of two compute units
  KernelCode on_one_unit = large;
  on_one_unit.rsrc1 &= ~pgm_rsrc1::wgp_mode.mask();
  KernelCode shared = on_one_unit;
  shared.wave_lanes = 64;
  shared.rsrc3 |= pgm_rsrc3::shared_vgpr_cnt.put(15);
  const auto check = [](const KernelCode& kernel, const DeviceShape& shape, std::uint32_t most, std::uint32_t more,
                        const std::string& why) {
    DispatchPlace place = sample_place(kernel, shape);
    place.workgroup = {most, 1, 1};
    CHECK(RecordedDispatch::record(kernel, shape, place).has_value());
    place.workgroup = {more, 1, 1};
    CHECK_THAT(refusal(kernel, place, shape).message, Catch::EndsWith(why));
  };
  // 256 registers are 11 granules of 24, or 16 of 16.
  check(large, navi31, 640, 768, "6 waves and 1584 vector registers on one SIMD, expected at most 16 and 1536");
  check(on_one_unit, navi31, 320, 384, "6 waves and 1584 vector registers on one SIMD, expected at most 16 and 1536");
  check(large, navi33, 512, 640, "5 waves and 1280 vector registers on one SIMD, expected at most 16 and 1024");
  check(large, navi21, 512, 640, "5 waves and 1280 vector registers on one SIMD, expected at most 16 and 1024");
  // With 120 that both halves of a wave share, 16 granules of 24.
  check(shared, navi31, 512, 640, "5 waves and 1920 vector registers on one SIMD, expected at most 16 and 1536");
}

TEST_CASE("pm4 recipe: targets have generations, or are not dispatched") {
  CHECK(generation_of(Target::gfx1030) == Generation::gfx10_3);
  for (const Target target : {Target::gfx1100, Target::gfx1101, Target::gfx1102, Target::gfx1103}) {
    CHECK(generation_of(target) == Generation::gfx11);
  }
  for (const Target target : {Target::invalid, Target::gfx1150, Target::gfx1151, Target::gfx1200, Target::gfx1201}) {
    CHECK(generation_of(target) == Generation::invalid);
  }
}

}  // namespace kiln::amdgpu_pm4
