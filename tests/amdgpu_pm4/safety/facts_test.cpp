// What a submission says of its programs, against what its registers say; and the limits of single packets.
#include <catch2/catch.hpp>

#include "amdgpu_pm4/packets/capabilities.hpp"
#include "safety/submission.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

constexpr std::uint64_t memory_va = Submission::data_va;
// Without some of the copies of its bit 47.
constexpr std::uint64_t broken = memory_va & 0xFFFE'FFFF'FFFF'FFFF;

// "ok", or why the submission is refused once it is changed.
std::string said(const Change& change, const DeviceShape& shape = navi31, std::uint32_t dispatches = 3) {
  Submission submission(shape, 1024, dispatches);
  change(submission);
  return submission.validate().text();
}

std::string said_of(const Dwords& packet, const DeviceShape& shape = navi31) {
  return said([&](Submission& s) { s.append(packet); }, shape);
}

std::string said_of_one(const Change& change) { return said(change, navi31, 1); }  // dispatch

// The value of a register of the first dispatch that a SET_SH_REG packet of `count` values sets.
void set_first(Submission& s, std::uint32_t count, std::uint32_t offset, std::size_t index, std::uint32_t value) {
  s.dword(s.find(0xC0007602 | count << 16, offset) + 2 + index) = value;
}

}  // namespace

TEST_CASE("pm4 safety: bits that facts and registers agree on are refused all the same") {
  const auto rsrc1 = [](std::uint32_t value) {
    return said_of_one([=](Submission& s) {
      s.programs[0].rsrc1 = value;
      set_first(s, 2, 0x212, 0, value);
    });
  };
  CHECK(rsrc1(0x60AF0080) == "ok");
  CHECK_THAT(rsrc1(0x60AF0080 | 1 << 20), Catch::Contains("PGM_RSRC1.PRIV is 1"));
  CHECK(rsrc1(0x60AF0080 | 31) == "ok");
  CHECK_THAT(rsrc1(0x60AF0080 | 32), Catch::Contains("PGM_RSRC1.VGPRS is 32, expected at most 31"));
  const auto rsrc2 = [](std::uint32_t value) {
    return said_of_one([=](Submission& s) {
      s.programs[0].rsrc2 = value;
      set_first(s, 2, 0x212, 1, value | 2 << 15);
    });
  };
  CHECK(rsrc2(0x9E) == "ok");
  CHECK_THAT(rsrc2(0x9E | 1 << 6), Catch::Contains("PGM_RSRC2.TRAP_PRESENT is 1"));
  CHECK(rsrc2(0x80 | 16 << 1) == "ok");
  CHECK_THAT(rsrc2(0x80 | 17 << 1), Catch::Contains("PGM_RSRC2.USER_SGPR is 17, expected at most 16"));
  const auto lds = [](std::uint32_t bytes, std::uint32_t granules) {
    return said_of_one([=](Submission& s) {
      s.programs[0].lds_bytes = bytes;
      set_first(s, 2, 0x212, 1, 0x9E | granules << 15);
    });
  };
  CHECK(lds(1024, 2) == "ok");
  CHECK_THAT(lds(1025, 2), Catch::Contains("1024 bytes, expected 1025 to 65536"));
  CHECK(lds(0, 128) == "ok");
  CHECK_THAT(lds(0, 129), Catch::Contains("66048 bytes, expected 0 to 65536"));
}

TEST_CASE("pm4 safety: where a program ends, and where its arguments and its scratch stand") {
  CHECK(said([](Submission& s) { s.programs[0].end_va = s.programs[0].entry_va; }) == "ok");
  CHECK_THAT(said([](Submission& s) { s.programs[0].end_va = s.programs[0].entry_va - 1; }),
             Catch::Contains("the program at 0xFFFF800100200100 ends before its start, at 0xFFFF8001002000FF"));
  const auto misplaced = [](Submission& s) { set_first(s, 16, 0x240, 0, lo(sample_kernarg_va) + 8); };
  CHECK_THAT(said(misplaced), Catch::Contains("expected a multiple of 16"));
  CHECK(said([&](Submission& s) {
          misplaced(s);
          s.programs[0].kernarg_bytes = 0;  // and so no matter
        }) == "ok");
  for (const std::uint32_t sgpr : {15U, no_sgpr}) {
    CHECK_THAT(said([=](Submission& s) { s.programs[0].kernarg_sgpr = sgpr; }),
               Catch::Contains("24 bytes of arguments, but no user SGPRs for the argument address"));
    CHECK_THAT(said([=](Submission& s) { s.programs[1].scratch_sgpr = sgpr; }, navi21),
               Catch::Contains("SCRATCH_EN is 1, but the program has no scratch address in user SGPRs"));
    CHECK(said([=](Submission& s) { s.programs[1].scratch_sgpr = sgpr; }) == "ok");  // gfx11 has registers for it
  }
  // The last two SGPRs can hold an address.
  CHECK(said_of_one([](Submission& s) {
          s.programs[0].kernarg_sgpr = 14;
          set_first(s, 16, 0x240, 14, lo(sample_kernarg_va));
          set_first(s, 16, 0x240, 15, hi(sample_kernarg_va));
        }) == "ok");
  CHECK_THAT(said([](Submission& s) { s.programs[0].scratch_bytes = 4; }),
             Catch::Contains("PGM_RSRC2.SCRATCH_EN is 0, but the program has 4 scratch bytes per lane"));
  for (const std::uint32_t left : {0U, 1U}) {  // of DISPATCH_SCRATCH_BASE_LO and HI, one alone is set
    CHECK_THAT(said([=](Submission& s) {
                 const std::size_t at = s.find(0xC0027602, 0x210);
                 s.dword(at) = 0xC0017602;
                 s.dword(at + 1) = 0x210 + left;
                 s.dword(at + 2) = s.dword(at + 2 + left);
                 s.dword(at + 3) = filler_dword;
               }),
               Catch::Contains("DISPATCH_SCRATCH_BASE is not set"));
  }
}

TEST_CASE("pm4 safety: the facts of a program come from its kernel's slots") {
  KernelCode kernel = sample_kernel_gfx10_3();
  const auto facts = [&kernel](std::vector<UserSgprSlot> slots) {
    kernel.user_sgpr_slots = std::move(slots);
    return program_facts(kernel, 0x10000, 0x3000);
  };
  const UserSgprSlot buffer{UserSgpr::private_segment_buffer, 1, 4}, flat{UserSgpr::flat_scratch_init, 6, 2},
      arguments{UserSgpr::kernarg_pointer, 8, 2};
  CHECK(facts({}).kernarg_sgpr == no_sgpr);
  CHECK(facts({}).scratch_sgpr == no_sgpr);
  CHECK(facts({arguments, flat}).kernarg_sgpr == 8);
  CHECK(facts({arguments, flat}).scratch_sgpr == 6);
  CHECK(facts({buffer, flat}).scratch_sgpr == 1);
  CHECK(facts({flat, buffer}).scratch_sgpr == 1);
  CHECK(facts({}).entry_va == 0x10100);
  CHECK(facts({}).end_va == 0x13000);
  CHECK(facts({}).wave_lanes == 32);
  CHECK(facts({}).kernarg_bytes == 24);
  kernel.scratch_bytes = 100;
  CHECK(facts({}).scratch_bytes == 100);
}

TEST_CASE("pm4 safety: each action on caches, alone") {
  constexpr std::uint32_t harmless = 1U << 5 | 1U << 6 | 1U << 7 | 1U << 8 | 1U << 9 | 1U << 14 | 1U << 15 | 3U << 16;
  for (unsigned bit = 0; bit < 32; ++bit) {
    CAPTURE(bit);
    const std::string all = said_of({0xC0065802, 0, ~0U, 0xFFFFFF, 0, 0, 10, 1U << bit});
    if (bit == 0 || (harmless >> bit & 1) != 0) {
      CHECK(all == "ok");
    } else if (bit == 4) {
      CHECK_THAT(all, Catch::Contains("GLM_WB with GLM_INV"));
    } else {
      CHECK_THAT(all, Catch::Contains(bit > 18 ? "no bits outside" : "whole caches, and nothing discarded"));
    }
  }
  CHECK(said_of({0xC0065802, 0, ~0U, 0xFFFFFF, 0, 0, 10, 0x30}) == "ok");
  CHECK_THAT(said_of({0xC0065802, 0, ~0U, 0xFFFFFF, 0, 0, 10, 3}), Catch::Contains("whole caches"));
  for (const Dwords& range :
       {Dwords{~1U, 0xFFFFFF, 0, 0}, {~0U, 0xFFFFFE, 0, 0}, {~0U, 0xFFFFFF, 1, 0}, {~0U, 0xFFFFFF, 0, 1}}) {
    CHECK_THAT(said_of({0xC0065802, 0, range[0], range[1], range[2], range[3], 10, 0x380}),
               Catch::Contains("a range of memory is given"));
  }
}

TEST_CASE("pm4 safety: ends of the spaces of registers") {
  CHECK_THAT(said_of({0xC0017602, 0x3FF, 0}), Catch::Contains("register 0xBFFC, which is not on the allow-list"));
  CHECK_THAT(said_of({0xC0017602, 0x400, 0}), Catch::Contains("register 0xC000, beyond the register range"));
  CHECK_THAT(said_of({0xC0027602, 0x3FF, 0, 0}), Catch::Contains("register 0xC000, beyond the register range"));
  CHECK_THAT(said_of({0xC0017902, 0x3FFF, 0}, navi21),
             Catch::Contains("register 0x3FFFC, which is not on the allow-list"));
  CHECK_THAT(said_of({0xC0017902, 0x4000, 0}, navi21), Catch::Contains("register 0x40000, beyond the register range"));
}

TEST_CASE("pm4 safety: a release may say nothing, or write 32 bits, 64 bits or the clock") {
  const auto release = [](std::uint32_t event, std::uint32_t select, std::uint64_t va, std::uint32_t context = 0) {
    return said_of({0xC0064902, event, select, lo(va), hi(va), 1, 0, context});
  };
  for (const unsigned bit : {12U, 13U, 14U, 15U, 20U, 21U, 22U, 23U}) {  // caches and their order
    CHECK(release(0x514 | 1U << bit, 0x43000000, memory_va) == "ok");
  }
  CHECK(release(0x603514, 0x40000000, memory_va) == "ok");  // without an interrupt
  CHECK(release(0x603528, 0x43000000, memory_va) == "ok");
  CHECK(release(0x603514, 0x43010000, memory_va) == "ok");  // through L2
  CHECK(release(0x603514, 0x03000000, 3) == "ok");          // nothing, and so no address
  CHECK(release(0x603514, 0x63000000, memory_va) == "ok");
  CHECK_THAT(release(0x603514, 0x63000000, memory_va + 4), Catch::Contains("a multiple of 8"));
  CHECK_THAT(release(0x603514, 0x23000000, memory_va + 2), Catch::Contains("a multiple of 4"));
  CHECK_THAT(release(0x603514, 0x44000000, memory_va), Catch::Contains("INT_SEL is 0x4"));
  CHECK_THAT(release(0x603514, 0x43000000, memory_va, 1), Catch::Contains("INT_CTXID"));
}

TEST_CASE("pm4 safety: both ends of a copy are looked at") {
  const auto copy = [](std::uint32_t control, std::uint64_t from, std::uint64_t to) {
    return said_of({0xC0044002, control, lo(from), hi(from), lo(to), hi(to)});
  };
  CHECK(copy(0x110202, memory_va, memory_va + 8) == "ok");  // L2 to L2
  CHECK(copy(0x100505, 0, memory_va + 4) == "ok");
  CHECK_THAT(copy(0x110505, 0, memory_va + 4),
             Catch::Contains("COPY_DATA destination is at") && Catch::Contains("a multiple of 8"));
  CHECK(copy(0x100501, memory_va + 4, memory_va) == "ok");
  CHECK_THAT(copy(0x100501, memory_va + 2, memory_va), Catch::Contains("COPY_DATA source is at"));
  CHECK_THAT(copy(0x100502, broken, memory_va), Catch::Contains("dword 3, SRC_HI is 0xFFFE8001"));
  CHECK_THAT(copy(0x100505, broken, memory_va), Catch::Equals("ok"));  // an immediate has no address
  CHECK_THAT(copy(0x100505, 0, broken), Catch::Contains("dword 5, DST_HI is 0xFFFE8001"));
  CHECK_THAT(copy(0x110505, 0, memory_va + Submission::data_bytes - 4), Catch::Contains("COPY_DATA destination"));
  CHECK(copy(0x100505, 0, memory_va + Submission::data_bytes - 4) == "ok");
  CHECK_THAT(copy(0x100503, memory_va, memory_va), Catch::Contains("SRC_SEL is 0x3"));
  CHECK_THAT(copy(0x100301, memory_va, memory_va), Catch::Contains("DST_SEL is 0x3"));

  const auto dma = [](std::uint32_t control, std::uint64_t from, std::uint64_t to, std::uint32_t command = 64) {
    return said_of({0xC0055002, control, lo(from), hi(from), lo(to), hi(to), command});
  };
  CHECK(dma(0x80000000, memory_va, memory_va + 64) == "ok");           // not through L2
  CHECK(dma(0xC0300000, broken + 1, memory_va) == "ok");               // a fill has no source address
  CHECK(dma(0xE0300000, memory_va, memory_va, 64 | 1 << 30) == "ok");  // RAW_WAIT
  CHECK(dma(0xE0300000, memory_va, memory_va + Submission::data_bytes - 4, 4) == "ok");
  CHECK_THAT(dma(0xE0300001, memory_va, memory_va), Catch::Contains("ENGINE_SEL is 0x1"));
  CHECK_THAT(dma(0xE0200000, memory_va, memory_va), Catch::Contains("DST_SEL is 0x2"));
  CHECK_THAT(dma(0xE0300000, memory_va + 2, memory_va), Catch::Contains("DMA_DATA source is at"));
  CHECK_THAT(dma(0xE0300000, memory_va, memory_va + 2), Catch::Contains("DMA_DATA destination is at"));
  CHECK_THAT(dma(0xE0300000, broken, memory_va), Catch::Contains("dword 3, SRC_HI"));
  CHECK_THAT(dma(0xE0300000, memory_va, broken), Catch::Contains("dword 5, DST_HI"));
  CHECK_THAT(dma(0xE0300000, memory_va + Submission::data_bytes - 4, memory_va, 8), Catch::Contains("DMA_DATA source"));
  CHECK(said_of({0xC0033702, 0x100200, lo(memory_va), hi(memory_va), 1}) == "ok");  // WRITE_DATA to L2
  CHECK_THAT(said_of({0xC0031502, 1, 1, 0, 0x8045}), Catch::Contains("a grid of 1x1x0 groups"));
}

TEST_CASE("pm4 safety: a wait is plain, and for one of the last sixteen values") {
  const auto wait = [](std::uint32_t control, std::uint32_t interval) {
    return said_of({0xC0053C02, control, lo(Submission::foreign_va), hi(Submission::foreign_va), 5, ~0U, interval});
  };
  CHECK(wait(0x15, 1) == "ok");
  CHECK_THAT(wait(0x25, 1), Catch::Contains("MEM_SPACE is 0x2"));
  CHECK_THAT(wait(0x115, 1), Catch::Contains("a plain wait"));
  CHECK_THAT(wait(0x95, 1), Catch::Contains("a plain wait"));
  for (const std::uint32_t others : {15U, 16U}) {
    CAPTURE(others);
    Dwords packets{0xC0033702, 0x100500, lo(memory_va), hi(memory_va), 5};
    for (std::uint32_t i = 0; i < others; ++i) {
      const std::uint64_t at = memory_va + 64 + 4 * std::uint64_t{i};
      packets.insert(packets.end(), {0xC0033702, 0x100500, lo(at), hi(at), 9});
    }
    packets.insert(packets.end(), {0xC0053C02, 0x13, lo(memory_va), hi(memory_va), 5, ~0U, 4});
    if (others == 15) {
      CHECK(said_of(packets) == "ok");
    } else {
      CHECK_THAT(said_of(packets), Catch::Contains("where neither an earlier packet of the submission nor a signal"));
    }
  }
}

}  // namespace kiln::amdgpu_pm4
