// A wait passes only where something in the submission, or a signal from outside, can end it.
#include <catch2/catch.hpp>

#include "safety/submission.hpp"

namespace kiln::amdgpu_pm4 {
TEST_CASE("pm4 safety: every wait has somebody who ends it") {
  constexpr std::uint64_t data = Submission::data_va;
  const auto wait = [](std::uint32_t control, std::uint64_t va, std::uint32_t reference, std::uint32_t mask) {
    return Dwords{0xC0053C02, control, lo(va), hi(va), reference, mask, 4};
  };
  const auto after_write = [&](std::uint32_t value, const Dwords& waiting) {
    Dwords both{0xC0033702, 0x100500, lo(data + 64), hi(data + 64), value};
    both.insert(both.end(), waiting.begin(), waiting.end());
    return both;
  };
  CHECK(passes_packet(wait(0x15, Submission::foreign_va, 5, ~0U)));
  CHECK_THAT(refused_packet(wait(0x15, data + 64, 5, ~0U)),
             Catch::Contains("neither an earlier packet of the submission nor a signal"));
  CHECK(passes_packet(after_write(5, wait(0x13, data + 64, 5, ~0U))));
  CHECK(passes_packet(after_write(0xABC5, wait(0x13, data + 64, 5, 0xF))));
  CHECK_THAT(refused_packet(after_write(4, wait(0x13, data + 64, 5, ~0U))),
             Catch::Contains("the value written there before is 0x4"));
  CHECK_THAT(refused_packet(after_write(5, wait(0x13, data + 68, 5, ~0U))),
             Catch::Contains("neither an earlier packet of the submission nor a signal"));
  // The last that is written there counts, whatever writes it.
  const auto over = [&](const Dwords& second) {
    Dwords packets = after_write(5, second);
    const Dwords waiting = wait(0x13, data + 64, 5, ~0U);
    packets.insert(packets.end(), waiting.begin(), waiting.end());
    return packets;
  };
  CHECK_THAT(refused_packet(over({0xC0043702, 0x100500, lo(data + 60), hi(data + 60), 7, 0})),
             Catch::Contains("the value written there before is 0x0"));
  CHECK(passes_packet(over({0xC0043702, 0x100500, lo(data + 60), hi(data + 60), 7, 5})));
  CHECK_THAT(refused_packet(over({0xC0044002, 0x100505, 6, 0, lo(data + 64), hi(data + 64)})),
             Catch::Contains("the value written there before is 0x6"));
  CHECK(passes_packet(over({0xC0044002, 0x110505, 5, 6, lo(data + 64), hi(data + 64)})));
  for (const Dwords& unknown : {Dwords{0xC0044002, 0x110509, 0, 0, lo(data + 64), hi(data + 64)},
                                {0xC0044002, 0x100501, lo(data), hi(data), lo(data + 64), hi(data + 64)},
                                {0xC0055002, 0xC0300000, 0, 0, lo(data), hi(data), 68},
                                {0xC0064902, 0x603514, 0x63000000, lo(data + 64), hi(data + 64), 0, 0, 0}}) {
    CHECK_THAT(refused_packet(over(unknown)), Catch::Contains("where the last written value is unknown"));
  }
  CHECK(passes_packet(over({0xC0055002, 0xC0300000, 0, 0, lo(data), hi(data), 64})));  // which ends before it
  CHECK(passes_packet(wait(0x10, data, 0, 0)));                                        // always
  CHECK(passes_packet(wait(0x15, data + 16, 9, ~0U)));  // the submission's own signal, before it
  CHECK(passes_packet(wait(0x13, data + 20, 0, ~0U)));  // its upper half
  const std::uint64_t last = data + Submission::data_bytes - 4;
  CHECK(passes_packet({0xC0033702, 0x100500, lo(last), hi(last), 5, 0xC0053C02, 0x13, lo(last), hi(last), 5, ~0U, 4}));
  CHECK_THAT(refused_packet(wait(0x13, Submission::foreign_va, 0x100, 0xFF)),
             Catch::Contains("no value under the mask"));
  CHECK_THAT(refused_packet(wait(0x16, Submission::foreign_va, ~0U, ~0U)), Catch::Contains("no value under the mask"));
  CHECK_THAT(refused_packet(wait(0x11, Submission::foreign_va, 0, ~0U)), Catch::Contains("no value under the mask"));
  CHECK_THAT(refused_packet(wait(0x17, Submission::foreign_va, 0, ~0U)), Catch::Contains("function 7"));
  CHECK_THAT(refused_packet(wait(0x05, Submission::foreign_va, 5, ~0U)), Catch::Contains("MEM_SPACE is 0x0"));
  CHECK_THAT(refused_packet(wait(0x55, Submission::foreign_va, 5, ~0U)), Catch::Contains("a plain wait"));
  CHECK_THAT(refused_packet(wait(0x15, Submission::foreign_va + 2, 5, ~0U)), Catch::Contains("a multiple of 4"));
  CHECK_THAT(refused_packet({0xC0053C02, 0x15, lo(Submission::foreign_va), hi(Submission::foreign_va), 5, ~0U, 0}),
             Catch::Contains("POLL_INTERVAL"));
}

TEST_CASE("pm4 safety: wait functions, and rejection of waits that never end") {
  constexpr std::uint64_t data = Submission::data_va;
  const auto wait = [](std::uint32_t function, std::uint64_t va, std::uint32_t reference, std::uint32_t mask) {
    return Dwords{0xC0053C02, 0x10 | function, lo(va), hi(va), reference, mask, 4};
  };
  struct Compared {
    std::uint32_t function;
    bool less, equal, greater;  // whether such a value ends the wait
  };
  constexpr Compared functions[] = {{0, true, true, true},     // always
                                    {1, true, false, false},   // less
                                    {2, true, true, false},    // less or equal
                                    {3, false, true, false},   // equal
                                    {4, true, false, true},    // not equal
                                    {5, false, true, true},    // not less
                                    {6, false, false, true}};  // greater
  for (const Compared& each : functions) {
    const bool ends[] = {each.less, each.equal, each.greater};
    for (std::uint32_t value = 4; value <= 6; ++value) {
      CAPTURE(each.function, value);
      Dwords packets{0xC0033702, 0x100500, lo(data + 64), hi(data + 64), value};
      const Dwords waiting = wait(each.function, data + 64, 5, ~0U);
      packets.insert(packets.end(), waiting.begin(), waiting.end());
      Submission submission(navi31);
      submission.append(packets);
      const std::string said = submission.validate().text();
      if (ends[value - 4]) {
        CHECK(said == "ok");
      } else {
        CHECK_THAT(said, Catch::Contains("for reference 0x5, but the value written there before is 0x" +
                                         std::to_string(value)));
      }
    }
  }
  struct Awaited {
    std::uint32_t function, reference, mask;
    bool possible;
  };
  constexpr Awaited waits[] = {
      {0, 0x10, 0, true},    {1, 0, ~0U, false},  {1, 1, ~0U, true},    {2, 0, 0, true},    {3, 0xF, 0xF, true},
      {3, 0x10, 0xF, false}, {4, 0, 0, false},    {4, 1, 0, true},      {4, 0, 1, true},    {5, 0xF, 0xF, true},
      {5, 0x10, 0xF, false}, {6, 0xE, 0xF, true}, {6, 0xF, 0xF, false}, {7, 0, ~0U, false},
  };
  for (const Awaited& each : waits) {
    CAPTURE(each.function, each.reference, each.mask);
    Submission submission(navi31);
    submission.append(wait(each.function, Submission::foreign_va, each.reference, each.mask));
    const std::string said = submission.validate().text();
    if (each.possible) {
      CHECK(said == "ok");
    } else {
      CHECK_THAT(said, Catch::Contains("no value under the mask"));
    }
  }
}

}  // namespace kiln::amdgpu_pm4
