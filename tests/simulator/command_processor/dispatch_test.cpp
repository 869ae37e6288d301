#include <catch2/catch.hpp>

#include "bench.hpp"

namespace kiln::simulator {
namespace {

const Dwords run_once = packet(0x15, {1, 1, 1, 0x8005});

std::string refusal(const Dwords& stream, Generation generation = Generation::gfx11, Ring ring = Ring::compute) {
  Bench bench(generation, ring);
  const auto fault = bench.run(stream);
  REQUIRE(fault);
  CHECK(fault->kind == FaultKind::bad_state);
  CHECK(engine_record().dispatches.empty());
  return fault->reason;
}

}  // namespace

TEST_CASE("simulator command processor: a dispatch hands over the registers as they stand") {
  Bench bench;
  const Dwords stream = Bench::sound_state() + set_sh(0xB810, {7, 8, 9}) + set_sh(0xB840, {0x0012'3456, 0x80}) +
                        set_sh(0xB854, {0x40'0000}) + set_sh(0xB860, {0x2001}) + set_sh(0xB8A0, {0x30}) +
                        set_sh(0xB81C, {4, 5, 6}) + set_sh(0xB858, {0x11, 0x12}) + set_sh(0xB864, {0x13, 0x14}) +
                        set_sh(0xB8AC, {0x15, 0x16, 0x17, 0x18}) +
                        set_sh(0xB900, {100, 101, 102, 103, 104, 105, 106, 107}) +
                        set_sh(0xB920, {108, 109, 110, 111, 112, 113, 114, 115}) +
                        packet(0x79, {(0x30E00 - 0x30000) / 4, 0x0055'6677, 0x81}) + packet(0x15, {2, 3, 4, 0x8045});
  CHECK_FALSE(bench.run(stream));
  REQUIRE(engine_record().dispatches.size() == 1);
  const DispatchState& state = engine_record().dispatches[0];
  CHECK(state.generation == Generation::gfx11);
  CHECK(state.program == 0x0000'0080'0020'0000);
  CHECK(state.rsrc1 == 0x60AF0080);
  CHECK(state.rsrc2 == 0x9E);
  CHECK(state.rsrc3 == 0x30);
  CHECK(state.resource_limits == 0x40'0000);
  CHECK(state.tmpring_size == 0x2001);
  CHECK(state.scratch_base == 0xFFFF'8000'1234'5600);  // bit 47 is set
  CHECK(state.border_colors == 0xFFFF'8100'5566'7700);
  CHECK(state.user_data ==
        std::array<std::uint32_t, 16>{100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111, 112, 113, 114, 115});
  CHECK(state.num_thread == std::array<std::uint32_t, 3>{4, 5, 6});
  CHECK(state.start == std::array<std::uint32_t, 3>{7, 8, 9});
  CHECK(state.groups == std::array<std::uint32_t, 3>{2, 3, 4});
  CHECK(state.initiator == 0x8045);
  CHECK(state.cu_mask == std::array<std::uint32_t, 8>{0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18});
  CHECK(bench.processor->counters().dispatches == 1);
}

TEST_CASE("simulator command processor: the scratch base may have its sign's ones above its bits") {
  Bench bench;
  CHECK_FALSE(bench.run(Bench::sound_state() + set_sh(0xB840, {0x0012'3456, 0xFF'FF80}) + run_once));
  REQUIRE(engine_record().dispatches.size() == 1);
  CHECK(engine_record().dispatches[0].scratch_base == 0xFFFF'8000'1234'5600);
  for (const std::uint32_t high : {0x100U, 0xFF'FF00U, 0x7F'FF80U, 0xFFFF'FF80U}) {
    CHECK_THAT(refusal(Bench::sound_state() + set_sh(0xB840, {0x0012'3456, high}) + run_once),
               Catch::Contains("SCRATCH_BASE_HI"));
  }
}

TEST_CASE("simulator command processor: gfx10.3 has four mask registers and no scratch base") {
  Bench bench(Generation::gfx10_3);
  CHECK_FALSE(bench.run(Bench::sound_state(Generation::gfx10_3) + run_once));
  REQUIRE(engine_record().dispatches.size() == 1);
  const DispatchState& state = engine_record().dispatches[0];
  CHECK(state.cu_mask == std::array<std::uint32_t, 8>{~0U, ~0U, ~0U, ~0U, 0, 0, 0, 0});
  CHECK(state.scratch_base == 0);
  CHECK(state.generation == Generation::gfx10_3);
}

TEST_CASE("simulator command processor: dispatches that hang hardware are refused with what is wrong") {
  const Dwords sound = Bench::sound_state();
  const Dwords no_cus = set_sh(0xB858, {0, 0}) + set_sh(0xB864, {0, 0}) + set_sh(0xB8AC, {0, 0, 0, 0});
  CHECK_THAT(refusal(sound + no_cus + run_once), Catch::Contains("no compute unit"));
  CHECK_THAT(refusal(sound + set_sh(0xB81C, {0, 1, 1}) + run_once), Catch::Contains("dimension of 0"));
  CHECK_THAT(refusal(sound + set_sh(0xB81C, {64, 17, 1}) + run_once), Catch::Contains("more than 1024"));
  CHECK_THAT(refusal(sound + set_sh(0xB81C, {0xFFFF, 0xFFFF, 0xFFFF}) + run_once), Catch::Contains("more than 1024"));
  CHECK_THAT(refusal(sound + set_sh(0xB81C, {64 | 3U << 16, 1, 1}) + run_once), Catch::Contains("PARTIAL_TG_EN"));
  CHECK_THAT(refusal(sound + set_sh(0xB81C, {64 | 65U << 16, 1, 1}) + packet(0x15, {1, 1, 1, 0x8007})),
             Catch::Contains("larger than the full"));
  CHECK_THAT(refusal(sound + set_sh(0xB830, {0, 0}) + run_once), Catch::Contains("COMPUTE_PGM is 0"));
  CHECK_THAT(refusal(sound + set_sh(0xB830, {1, 0x100}) + run_once), Catch::Contains("COMPUTE_PGM_HI"));
  CHECK_THAT(refusal(sound + set_sh(0xB848, {1U << 20}) + run_once), Catch::Contains("PRIV"));
  CHECK_THAT(refusal(sound + set_sh(0xB84C, {1U << 6}) + run_once), Catch::Contains("TRAP_PRESENT"));
  CHECK_THAT(refusal(sound + set_sh(0xB84C, {1}) + run_once), Catch::Contains("TMPRING_SIZE"));
  CHECK_THAT(refusal(sound + set_sh(0xB84C, {1}) + set_sh(0xB860, {0x1001}) + run_once),
             Catch::Contains("scratch base"));
  CHECK_THAT(refusal(sound + packet(0x15, {1, 1, 1, 0x8004})), Catch::Contains("COMPUTE_SHADER_EN"));
  CHECK_THAT(refusal(run_once), Catch::Contains("no compute unit"));  // nothing is left over from anybody
}

TEST_CASE("simulator command processor: initiator bits are those of the generation") {
  const auto with = [](Generation generation, std::uint32_t bits) {
    Bench bench(generation);
    return kind(bench.run(Bench::sound_state(generation) + packet(0x15, {1, 1, 1, bits})));
  };
  CHECK(with(Generation::gfx11, 0x45) == FaultKind::invalid);
  CHECK(with(Generation::gfx11, 0x8C67) == FaultKind::invalid);
  CHECK(with(Generation::gfx11, 1 | 1U << 17) == FaultKind::invalid);
  CHECK(with(Generation::gfx10_3, 1 | 1U << 17) == FaultKind::unknown_packet);
  for (const unsigned bit : {3, 4, 7, 13, 14, 16, 18, 31})
    CHECK(with(Generation::gfx11, 1 | 1U << bit) == FaultKind::unknown_packet);
}

TEST_CASE("simulator command processor: dispatches at the limits run") {
  const auto runs = [](const Dwords& state, std::uint32_t bits, Generation generation = Generation::gfx11) {
    Bench bench(generation);
    const auto fault = bench.run(Bench::sound_state(generation) + state + packet(0x15, {1, 1, 1, bits}));
    INFO((fault ? describe(*fault) : std::string()));
    CHECK_FALSE(fault);
    return engine_record().dispatches.size() == 1;
  };
  CHECK(runs(set_sh(0xB81C, {1024, 1, 1}), 0x8005));
  CHECK(runs(set_sh(0xB81C, {8, 8, 16}), 0x8005));
  CHECK(runs(set_sh(0xB81C, {64 | 64U << 16, 1, 1}), 0x8007));
  CHECK(runs(set_sh(0xB830, {1, 0xFF}), 0x8005));
  CHECK(runs(set_sh(0xB858, {0, 0}) + set_sh(0xB864, {0, 0}) + set_sh(0xB8AC, {0, 0, 0, 1}), 0x8005));
  // The size of a wave's scratch has 13 bits on gfx10.3 and 15 on gfx11.
  const Dwords base = set_sh(0xB84C, {1}) + set_sh(0xB840, {1, 0});
  CHECK(runs(base + set_sh(0xB860, {1 | 1U << 26}), 0x8005));
  CHECK(runs(set_sh(0xB84C, {1}) + set_sh(0xB860, {1 | 1U << 24}), 0x8005, Generation::gfx10_3));
  CHECK_THAT(
      refusal(Bench::sound_state(Generation::gfx10_3) + set_sh(0xB84C, {1}) + set_sh(0xB860, {1 | 1U << 25}) + run_once,
              Generation::gfx10_3),
      Catch::Contains("TMPRING_SIZE"));
  CHECK_THAT(refusal(Bench::sound_state() + base + set_sh(0xB860, {1}) + run_once), Catch::Contains("TMPRING_SIZE"));
  CHECK_THAT(refusal(Bench::sound_state() + base + set_sh(0xB860, {1U << 12}) + run_once),
             Catch::Contains("TMPRING_SIZE"));
  CHECK_THAT(refusal(Bench::sound_state() + set_sh(0xB81C, {1025, 1, 1}) + run_once),
             Catch::Contains("more than 1024"));
  for (const Dwords& groups : {Dwords{0, 1, 1, 5}, Dwords{1, 1, 0, 5}}) {
    Bench bench;
    CHECK_FALSE(bench.run(Bench::sound_state() + packet(0x15, groups)));
    CHECK(engine_record().dispatches.empty());
  }
}

TEST_CASE("simulator command processor: a partial last workgroup is handed on") {
  Bench bench;
  CHECK_FALSE(
      bench.run(Bench::sound_state() + set_sh(0xB81C, {64 | 3U << 16, 1, 1}) + packet(0x15, {5, 1, 1, 0x8027})));
  REQUIRE(engine_record().dispatches.size() == 1);
  CHECK(engine_record().dispatches[0].num_thread[0] == (64 | 3U << 16));
}

TEST_CASE("simulator command processor: a dispatch of no groups is checked and runs nothing") {
  Bench bench;
  CHECK_FALSE(bench.run(Bench::sound_state() + packet(0x15, {4, 0, 1, 5})));
  CHECK(engine_record().dispatches.empty());
  CHECK(bench.processor->counters().dispatches == 1);
  CHECK(kind(bench.run(packet(0x15, {4, 0, 1, 5}))) == FaultKind::bad_state);
}

TEST_CASE("simulator command processor: the graphics ring's dispatches are marked as compute") {
  Bench bench(Generation::gfx11, Ring::graphics);
  CHECK_FALSE(bench.run(Bench::sound_state() + run_once));
  CHECK_THAT(refusal(Bench::sound_state() + Dwords{header(0x15, 4, 0), 1, 1, 1, 5}, Generation::gfx11, Ring::graphics),
             Catch::Contains("SHADER_TYPE"));
}

TEST_CASE("simulator command processor: group counts come from memory, in each ring's form") {
  const std::uint64_t counts = Bench::data + 0x84;
  Bench compute;
  compute.set(0x84, 5);
  compute.set(0x88, 6);
  compute.set(0x8C, 7);
  CHECK_FALSE(compute.run(Bench::sound_state() + packet(0x16, {Bench::low(counts), Bench::high(counts), 0x8005})));
  REQUIRE(engine_record().dispatches.size() == 1);
  CHECK(engine_record().dispatches[0].groups == std::array<std::uint32_t, 3>{5, 6, 7});
  CHECK(engine_record().dispatches[0].initiator == 0x8005);
  CHECK(kind(compute.run(Bench::sound_state() + packet(0x16, {0x84, 0x8005}))) == FaultKind::unknown_packet);
  CHECK(kind(compute.run(Bench::sound_state() + packet(0x16, {Bench::low(counts) + 2, Bench::high(counts), 5}))) ==
        FaultKind::misaligned);
  CHECK(kind(compute.run(Bench::sound_state() + packet(0x16, {0, 0x1'0000, 5}))) == FaultKind::unknown_packet);
  CHECK(kind(compute.run(Bench::sound_state() + packet(0x16, {0, 0, 5}))) == FaultKind::unmapped);

  Bench graphics(Generation::gfx11, Ring::graphics);
  graphics.set(0x84, 8);
  graphics.set(0x88, 1);
  graphics.set(0x8C, 1);
  const Dwords base = packet(0x11, {1, Bench::low(Bench::data), Bench::high(Bench::data)});
  CHECK_FALSE(graphics.run(Bench::sound_state() + base + packet(0x16, {0x84, 0x8005})));
  REQUIRE(engine_record().dispatches.size() == 1);
  CHECK(engine_record().dispatches[0].groups == std::array<std::uint32_t, 3>{8, 1, 1});
  CHECK_THAT(refusal(Bench::sound_state() + packet(0x16, {0x84, 0x8005}), Generation::gfx11, Ring::graphics),
             Catch::Contains("SET_BASE"));
  CHECK(kind(graphics.run(packet(0x11, {0, 0, 0}))) == FaultKind::unknown_packet);
}

TEST_CASE("simulator command processor: the engine's fault ends the job and names the packet") {
  Bench bench;
  CHECK_FALSE(bench.run({0xFFFF1000}));
  engine_record().answer = Fault{FaultKind::unmapped, 0x1234, 0xF0, "no buffer is mapped there"};
  const Dwords state = Bench::sound_state();
  const auto fault = bench.run(state + run_once + run_once);
  REQUIRE(kind(fault) == FaultKind::unmapped);
  CHECK(fault->address == 0x1234);
  CHECK(fault->dword == 0xF0);
  char where[64];
  std::snprintf(where, sizeof where, "(DISPATCH_DIRECT at 0x%llx)",
                static_cast<unsigned long long>(Bench::code + state.size() * 4));
  CHECK_THAT(fault->reason, Catch::Contains(where));
  CHECK(engine_record().dispatches.size() == 1);
}

TEST_CASE("simulator command processor: dispatches overlap until something waits for them") {
  const Dwords flush = packet(0x46, {7 | 4U << 8});
  const Dwords release =
      packet(0x49, {0x28 | 5U << 8, 1U << 29, Bench::low(Bench::data), Bench::high(Bench::data), 1, 0, 0});
  const Dwords wait = packet(0x3C, {3 | 1U << 4, Bench::low(Bench::data), Bench::high(Bench::data), 1, ~0U, 4});
  const Dwords acquire = packet(0x58, {0, ~0U, 0xFF'FFFF, 0, 0, 0, 1U << 14});
  struct Case {
    Dwords between;
    bool overlaps;
  };
  const Case cases[] = {{{0xFFFF1000}, true}, {acquire, true},         {release, true},
                        {flush, false},       {release + wait, false}, {release + acquire, true}};
  for (const Case& each : cases) {
    Bench bench;
    CHECK_FALSE(bench.run(Bench::sound_state() + run_once + each.between + run_once + run_once));
    REQUIRE(engine_record().dispatches.size() == 3);
    CHECK_FALSE(engine_record().dispatches[0].overlaps);
    CHECK(engine_record().dispatches[1].overlaps == each.overlaps);
    CHECK(engine_record().dispatches[2].overlaps);
    CHECK_FALSE(bench.run(Bench::sound_state() + run_once));  // another job
    CHECK_FALSE(engine_record().dispatches[3].overlaps);
  }
}

}  // namespace kiln::simulator
