// Each word of a packet that is refused is named with its place in the packet, its value and what was expected.
#include <catch2/catch.hpp>

#include "safety/submission.hpp"

namespace kiln::amdgpu_pm4 {

TEST_CASE("pm4 safety: a refused word is named with its place, its value and what is expected") {
  constexpr std::uint64_t data = Submission::data_va;
  constexpr std::uint32_t low = lo(data), high = hi(data);
  constexpr std::uint32_t no_half = 0x1'8001;  // no upper half of an address
  struct Refusal {
    Dwords packet;
    std::string why;
  };
  const Refusal refusals[] = {
      {{0xFFFF1002}, "dword 0, the header is 0xFFFF1002, expected 0xFFFF1000 of a NOP without a body"},
      {{0xC0017600, 0x228, 0}, "dword 0, the header's low byte is 0x0, expected 2: for compute, without a predicate"},
      {{0xC0017602, 0x30000216, 0}, "dword 1, INDEX is 0x3, expected 0"},
      {{0xC0019B02, 0x216, 0}, "dword 1, INDEX is 0x0, expected 3: through the mask of compute units"},
      {{0xC0027602, 0x20C, 0, 0x100}, "dword 3, COMPUTE_PGM_HI is 0x100, expected no bits outside 0xFF"},
      {{0xC0023F02, low, high, 8}, "dword 3, CHAIN is 0x0, expected 1: compute rings support only chained buffers"},
      {{0xC0023F02, low, high, 0x100008}, "dword 3, CONTROL is 0x100008, expected only CHAIN, VALID and the size"},
      {{0xC0065802, 0x800, ~0U, 0xFFFFFF, 0, 0, 10, 0x380}, "dword 1, COHER_CNTL is 0x800, expected 0"},
      {{0xC0065802, 0, ~0U, 0xFFFFFF, 0, 0, 0x8000000A, 0x380}, "dword 6, PWS_ENA is 0x1, expected 0"},
      {{0xC0065802, 0, ~0U, 0xFFFFFF, 0, 0, 10, 2},
       "dword 7, GCR_CNTL is 0x2, expected whole caches, and nothing discarded"},
      {{0xC0065802, 0, ~0U, 0xFFFFFF, 0, 0, 10, 0x10}, "dword 7, GCR_CNTL is 0x10, expected GLM_WB with GLM_INV"},
      {{0xC0065802, 0, ~0U, 0xFFFFFF, 0, 0, 10, 0x80000}, "dword 7, GCR_CNTL is 0x80000, expected no bits outside 0x"},
      {{0xC0004602, 0x406}, "dword 1, EVENT is 0x406, expected CS_PARTIAL_FLUSH with index 4"},
      {{0xC0064902, 0x603414, 0x43000000, low, high, 1, 0, 0},
       "dword 1, EVENT is 0x603414, expected CACHE_FLUSH_AND_INV_TS or BOTTOM_OF_PIPE_TS with index 5"},
      {{0xC0064902, 0x683514, 0x43000000, low, high, 1, 0, 0},
       "dword 1, EVENT is 0x683514, expected no bits outside 0x"},
      {{0xC0064902, 0x603514, 0x42000000, low, high, 1, 0, 0},
       "dword 2, INT_SEL is 0x2, expected 0 or 3: interrupts are the kernel's"},
      {{0xC0064902, 0x603514, 0x83000000, low, high, 1, 0, 0}, "dword 2, DATA_SEL is 0x4, expected 0 to 3"},
      {{0xC0064902, 0x603514, 0x43020000, low, high, 1, 0, 0}, "dword 2, DST_SEL is 0x2, expected 0 or 1: memory"},
      {{0xC0064902, 0x603514, 0x43000000, low, high, 1, 0, 7}, "dword 7, INT_CTXID is 0x7, expected 0"},
      {{0xC0064902, 0x603514, 0x43000000, low, no_half, 1, 0, 0},
       "dword 4, ADDRESS_HI is 0x18001, expected the upper half of a 48-bit address"},
      {{0xC0043702, 0x100000, low, high, 1, 2}, "dword 1, DST_SEL is 0x0, expected 5 or 2: memory"},
      {{0xC0043702, 0x40100500, low, high, 1, 2}, "dword 1, ENGINE_SEL is 0x1, expected 0"},
      {{0xC0043702, 0x110500, low, high, 1, 2}, "dword 1, WR_ONE_ADDR is 0x1, expected 0"},
      {{0xC0044002, 0x110001, low, high, low, high}, "dword 1, DST_SEL is 0x0, expected 5 or 2: memory"},
      {{0xC0044002, 0x110500, low, high, low, high},
       "dword 1, SRC_SEL is 0x0, expected memory, an immediate or the clock"},
      {{0xC0044002, 0x110501, low, no_half, low, high},
       "dword 3, SRC_HI is 0x18001, expected the upper half of a 48-bit address"},
      {{0xC0044002, 0x110501, low, high, low, no_half},
       "dword 5, DST_HI is 0x18001, expected the upper half of a 48-bit address"},
      {{0xC0055002, 0xE0300001, low, high, low, high, 64}, "dword 1, ENGINE_SEL is 0x1, expected 0"},
      {{0xC0055002, 0xE0100000, low, high, low, high, 64}, "dword 1, DST_SEL is 0x1, expected 0 or 3: memory"},
      {{0xC0055002, 0xA0300000, low, high, low, high, 64},
       "dword 1, SRC_SEL is 0x1, expected 0, 2 or 3: memory or a fill"},
      {{0xC0055002, 0x60300000, low, high, low, high, 64},
       "dword 1, CP_SYNC is 0x0, expected 1: what follows may depend on it"},
      {{0xC0055002, 0xE0300000, low, high, low, high, 0x10000040},
       "dword 6, COMMAND is 0x10000040, expected no bits outside 0x"},
      {{0xC0055002, 0xE0300000, low, high, low, high, 6},
       "dword 6, BYTE_COUNT is 0x6, expected a multiple of 4, at least 4"},
      {{0xC0055002, 0xE0300000, low, no_half, low, high, 64},
       "dword 3, SRC_HI is 0x18001, expected the upper half of a 48-bit address"},
      {{0xC0055002, 0xE0300000, low, high, low, no_half, 64},
       "dword 5, DST_HI is 0x18001, expected the upper half of a 48-bit address"},
      {{0xC0053C02, 0x05, low, high, 5, ~0U, 4}, "dword 1, MEM_SPACE is 0x0, expected 1: memory"},
      {{0xC0053C02, 0x55, low, high, 5, ~0U, 4}, "dword 1, CONTROL is 0x55, expected a plain wait"},
      {{0xC0053C02, 0x15, low, high, 5, ~0U, 0}, "dword 6, POLL_INTERVAL is 0x0, expected at least 1"},
  };
  for (const Refusal& each : refusals) CHECK_THAT(refused_packet(each.packet), Catch::Contains(": " + each.why));
  CHECK_THAT(refused_packet({0xC0FF7602, 0x240, 0}), Catch::Contains(": the body of 256 dwords is truncated after "));
}

TEST_CASE("pm4 safety: a register that a packet leaves out is named, the first or the last of its packet") {
  struct Missing {
    std::uint32_t count, offset;  // of the packet
    bool first;                   // which of its registers is left out
    const char* why;
  };
  const Missing rows[] = {
      {3, 0x204, false, "COMPUTE_START_Z is not set by this submission, but needed by a dispatch"},
      {3, 0x207, false, "COMPUTE_NUM_THREAD_Z is not set by this submission"},
      {2, 0x20C, false, "COMPUTE_PGM_HI is not set by this submission"},
      {2, 0x212, false, "COMPUTE_PGM_RSRC2 is not set by this submission"},
      {2, 0x216, true, "COMPUTE_STATIC_THREAD_MGMT_SE0 is not set by this submission"},
      {4, 0x22B, false, "STATIC_THREAD_MGMT_SE7 is not set by this submission"},
      {16, 0x240, true, "USER_DATA_0 is not set by this submission, the program needs 15 user SGPRs"}};
  for (const Missing& row : rows) {
    CHECK_THAT(refused(
                   [&row](Submission& s) {
                     const std::size_t at = s.find(0xC0007602 | row.count << 16, row.offset);
                     s.dword(at) -= 1U << 16;
                     if (row.first) s.dword(at + 1) += 1;
                     s.dword(at + 1 + row.count) = 0xFFFF1000;
                   },
                   StatusCode::invalid_argument, {Generation::gfx11, 8, 96}),
               Catch::Contains(row.why));
  }
}

}  // namespace kiln::amdgpu_pm4
