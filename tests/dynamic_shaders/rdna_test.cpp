#include <catch2/catch.hpp>

#include "dynamic_shaders/rdna/facts.hpp"

namespace kiln::dynamic_shaders::rdna {

TEST_CASE("rdna: waves of a SIMD by registers") {
  const struct {
    const char* target;
    std::uint32_t vgprs;
    Wave wave;
    std::uint32_t waves;
  } rows[] = {{"gfx1100", 96, Wave::w32, 16},  {"gfx1100", 97, Wave::w32, 12}, {"gfx1100", 120, Wave::w32, 12},
              {"gfx1100", 128, Wave::w32, 10}, {"gfx1100", 192, Wave::w32, 8}, {"gfx1100", 256, Wave::w32, 5},
              {"gfx1100", 257, Wave::w32, 0},  {"gfx1100", 48, Wave::w64, 16}, {"gfx1100", 96, Wave::w64, 8},
              {"gfx1102", 64, Wave::w32, 16},  {"gfx1102", 96, Wave::w32, 10}, {"gfx1102", 128, Wave::w32, 8},
              {"gfx1102", 256, Wave::w32, 4},  {"gfx1030", 64, Wave::w32, 16}, {"gfx1030", 128, Wave::w32, 8},
              {"gfx1030", 128, Wave::w64, 4},  {"gfx1150", 96, Wave::w32, 10}, {"gfx1151", 96, Wave::w32, 16},
              {"gfx1151", 0, Wave::w32, 16}};
  for (const auto& row : rows) {
    INFO(row.target << " " << row.vgprs);
    const auto facts = facts_of(row.target);
    REQUIRE(facts.has_value());
    CHECK(waves_of_simd(*facts, row.vgprs, row.wave) == row.waves);
  }
  CHECK_FALSE(facts_of("gfx900").has_value());
  CHECK_FALSE(facts_of("").has_value());
}

TEST_CASE("rdna: workgroups of a workgroup processor by LDS") {
  const Facts facts = *facts_of("gfx1100");
  CHECK(workgroups_by_lds(facts, 64 * 1024, Mode::wgp) == 2);
  CHECK(workgroups_by_lds(facts, 64 * 1024 + 1, Mode::wgp) == 0);
  CHECK(workgroups_by_lds(facts, 48 * 1024, Mode::wgp) == 2);
  CHECK(workgroups_by_lds(facts, 40 * 1024, Mode::wgp) == 3);
  CHECK(workgroups_by_lds(facts, 40 * 1024, Mode::cu) == 2);
  CHECK(workgroups_by_lds(facts, 1, Mode::wgp) == 128);
  CHECK(workgroups_by_lds(facts, 1025, Mode::wgp) == 64);
}

TEST_CASE("rdna: waves by the workgroup's size") {
  CHECK(wave_of_workgroup(64) == Wave::w64);
  CHECK(wave_of_workgroup(256) == Wave::w64);
  CHECK(wave_of_workgroup(32) == Wave::w32);
  CHECK(wave_of_workgroup(96) == Wave::w32);
}

TEST_CASE("rdna: what pairs in a dual-issue instruction") {
  const Facts rdna3 = *facts_of("gfx1100"), rdna2 = *facts_of("gfx1030");
  const Half x{0, 4, 8}, y{1, 5, 9};
  CHECK(pairs(rdna3, x, y, Wave::w32));
  CHECK(pairs(rdna3, y, x, Wave::w32));
  CHECK_FALSE(pairs(rdna3, x, y, Wave::w64));
  CHECK_FALSE(pairs(rdna2, x, y, Wave::w32));
  CHECK_FALSE(pairs(rdna3, x, {2, 5, 9}, Wave::w32));   // both destinations even
  CHECK_FALSE(pairs(rdna3, x, {1, 8, 9}, Wave::w32));   // source 0: one bank
  CHECK_FALSE(pairs(rdna3, x, {1, 5, 12}, Wave::w32));  // source 1: one bank
  CHECK_FALSE(pairs(rdna3, {0, 4, 8}, {1, 5, 0}, Wave::w32));
  CHECK_FALSE(pairs(rdna3, {0, 1, 8}, {1, 6, 9}, Wave::w32));  // the first needs the second's result
  CHECK_FALSE(pairs(rdna3, {0, 5, 8}, {1, 0, 9}, Wave::w32));  // the second needs the first's
}

TEST_CASE("rdna: roofs") {
  CHECK(roof_gflops(*facts_of("gfx1100"), 48, 2.5, Issue::single) == 30720);
  CHECK(roof_gflops(*facts_of("gfx1100"), 48, 2.5, Issue::dual) == 61440);
  CHECK(roof_gflops(*facts_of("gfx1030"), 40, 2.25, Issue::dual) == 23040);
}

}  // namespace kiln::dynamic_shaders::rdna
