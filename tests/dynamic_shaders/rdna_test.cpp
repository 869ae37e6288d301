#include <catch2/catch.hpp>

#include "dynamic_shaders/space/rdna_facts.hpp"

namespace kiln::dynamic_shaders::rdna {
namespace {

Facts known(const char* target) {
  INFO(target);
  const auto facts = facts_of(target);
  REQUIRE(facts.has_value());
  return *facts;
}

// One of each generation, and those that have a larger register file than the others of theirs.
constexpr const char* rdna2 = "gfx1030";
constexpr const char* rdna3 = "gfx1100";
constexpr const char* rdna3_small = "gfx1102";
constexpr const char* rdna3_5 = "gfx1150";
constexpr const char* rdna3_5_large = "gfx1151";

}  // namespace

TEST_CASE("rdna: every target has its generation and its register file") {
  const struct {
    const char* target;
    Generation generation;
    std::uint32_t vgprs, granule;
  } rows[] = {
      {"gfx1030", Generation::rdna2, 1024, 16},   {"gfx1031", Generation::rdna2, 1024, 16},
      {"gfx1032", Generation::rdna2, 1024, 16},   {"gfx1033", Generation::rdna2, 1024, 16},
      {"gfx1034", Generation::rdna2, 1024, 16},   {"gfx1035", Generation::rdna2, 1024, 16},
      {"gfx1036", Generation::rdna2, 1024, 16},   {"gfx1037", Generation::rdna2, 1024, 16},
      {"gfx1100", Generation::rdna3, 1536, 24},   {"gfx1101", Generation::rdna3, 1536, 24},
      {"gfx1102", Generation::rdna3, 1024, 16},   {"gfx1103", Generation::rdna3, 1024, 16},
      {"gfx1150", Generation::rdna3_5, 1024, 16}, {"gfx1151", Generation::rdna3_5, 1536, 24},
      {"gfx1152", Generation::rdna3_5, 1024, 16},
  };
  for (const auto& row : rows) {
    const Facts facts = known(row.target);
    CHECK(facts.target == row.target);
    CHECK(facts.generation == row.generation);
    CHECK(facts.vgprs == row.vgprs);
    CHECK(facts.granule == row.granule);
    CHECK(facts.dual_issue == (row.generation != Generation::rdna2));
    CHECK(facts.lds_bytes == 131072);
  }
  for (const char* target : {"gfx900", "gfx1010", "gfx1200", "gfx110", "gfx11000", ""}) {
    INFO(target);
    CHECK_FALSE(facts_of(target).has_value());
  }
}

TEST_CASE("rdna: waves of a SIMD by registers") {
  const struct {
    const char* target;
    std::uint32_t vgprs;
    Wave wave;
    std::uint32_t waves;
  } rows[] = {
      {rdna2, 0, Wave::w32, 16},          {rdna2, 64, Wave::w32, 16},          {rdna2, 65, Wave::w32, 12},
      {rdna2, 96, Wave::w32, 10},         {rdna2, 128, Wave::w32, 8},          {rdna2, 192, Wave::w32, 5},
      {rdna2, 256, Wave::w32, 4},         {rdna2, 257, Wave::w32, 0},          {rdna2, 32, Wave::w64, 16},
      {rdna2, 33, Wave::w64, 12},         {rdna2, 64, Wave::w64, 8},           {rdna2, 128, Wave::w64, 4},
      {rdna2, 256, Wave::w64, 2},         {rdna2, 257, Wave::w64, 0},          {rdna3, 0, Wave::w32, 16},
      {rdna3, 96, Wave::w32, 16},         {rdna3, 97, Wave::w32, 12},          {rdna3, 120, Wave::w32, 12},
      {rdna3, 128, Wave::w32, 10},        {rdna3, 192, Wave::w32, 8},          {rdna3, 256, Wave::w32, 5},
      {rdna3, 257, Wave::w32, 0},         {rdna3, 48, Wave::w64, 16},          {rdna3, 49, Wave::w64, 12},
      {rdna3, 96, Wave::w64, 8},          {rdna3, 128, Wave::w64, 5},          {rdna3, 256, Wave::w64, 2},
      {rdna3_small, 64, Wave::w32, 16},   {rdna3_small, 96, Wave::w32, 10},    {rdna3_small, 128, Wave::w32, 8},
      {rdna3_small, 256, Wave::w32, 4},   {rdna3_small, 64, Wave::w64, 8},     {rdna3_5, 64, Wave::w32, 16},
      {rdna3_5, 96, Wave::w32, 10},       {rdna3_5, 128, Wave::w32, 8},        {rdna3_5, 256, Wave::w32, 4},
      {rdna3_5, 64, Wave::w64, 8},        {rdna3_5, 257, Wave::w32, 0},        {rdna3_5_large, 96, Wave::w32, 16},
      {rdna3_5_large, 97, Wave::w32, 12}, {rdna3_5_large, 128, Wave::w32, 10}, {rdna3_5_large, 192, Wave::w32, 8},
      {rdna3_5_large, 96, Wave::w64, 8},
  };
  for (const auto& row : rows) {
    INFO(row.target << " " << row.vgprs << ", waves of " << static_cast<int>(row.wave));
    CHECK(waves_of_simd(known(row.target), row.vgprs, row.wave) == row.waves);
  }
}

TEST_CASE("rdna: workgroups of a workgroup processor by LDS, in either mode") {
  const struct {
    std::uint32_t bytes;
    std::uint32_t wgp, cu;
  } rows[] = {{0, 128, 128},     {1, 128, 128},     {1024, 128, 128},  {1025, 64, 64},    {24 * 1024, 5, 4},
              {32 * 1024, 4, 4}, {40 * 1024, 3, 2}, {48 * 1024, 2, 2}, {64 * 1024, 2, 2}, {64 * 1024 + 1, 0, 0}};
  for (const char* target : {rdna2, rdna3, rdna3_small, rdna3_5, rdna3_5_large}) {
    for (const auto& row : rows) {
      INFO(target << " " << row.bytes);
      CHECK(workgroups_by_lds(known(target), row.bytes, Mode::wgp) == row.wgp);
      CHECK(workgroups_by_lds(known(target), row.bytes, Mode::cu) == row.cu);
    }
  }
}

TEST_CASE("rdna: waves of a kernel by what limits them, in either mode") {
  constexpr std::uint32_t kib = 1024;
  const struct {
    const char* target;
    Need need;
    Wave wave;
    double wgp, cu;
  } rows[] = {
      {rdna2, {64, 256, 0}, Wave::w32, 16, 16},          // nothing
      {rdna2, {96, 256, 0}, Wave::w32, 10, 8},           // registers; in CU mode 20 places hold two groups of 8 waves
      {rdna2, {64, 256, 32 * kib}, Wave::w32, 8, 8},     // LDS
      {rdna2, {64, 256, 40 * kib}, Wave::w32, 6, 4},     // LDS, of which a half has more to spare
      {rdna2, {128, 1024, 0}, Wave::w32, 8, 0},          // a group too large for one compute unit
      {rdna2, {256, 1024, 0}, Wave::w32, 0, 0},          // and for both
      {rdna2, {64, 64, 64 * kib + 1}, Wave::w32, 0, 0},  // more LDS than a workgroup may have
      {rdna2, {64, 256, 0}, Wave::w64, 8, 8},            // registers, of wider waves
      {rdna2, {64, 1, 64 * kib}, Wave::w32, 0.5, 0.5},   // two waves on four SIMDs
      {rdna3, {96, 256, 0}, Wave::w32, 16, 16},
      {rdna3, {128, 256, 0}, Wave::w32, 10, 8},
      {rdna3, {120, 1024, 0}, Wave::w32, 8, 0},  // 48 places, of which one group of 32 waves fits
      {rdna3, {96, 256, 40 * kib}, Wave::w32, 6, 4},
      {rdna3, {96, 256, 0}, Wave::w64, 8, 8},
      {rdna3_small, {96, 256, 0}, Wave::w32, 10, 8},
      {rdna3_5, {96, 256, 0}, Wave::w32, 10, 8},
      {rdna3_5, {64, 256, 24 * kib}, Wave::w32, 10, 8},
      {rdna3_5_large, {96, 256, 0}, Wave::w32, 16, 16},
      {rdna3_5_large, {96, 256, 24 * kib}, Wave::w32, 10, 8},
  };
  for (const auto& row : rows) {
    INFO(row.target << " " << row.need.vgprs << " registers, " << row.need.lanes << " lanes, " << row.need.lds_bytes);
    CHECK(waves_of_kernel(known(row.target), row.need, row.wave, Mode::wgp) == row.wgp);
    CHECK(waves_of_kernel(known(row.target), row.need, row.wave, Mode::cu) == row.cu);
  }
}

TEST_CASE("rdna: waves by the workgroup's size, the same in each generation") {
  CHECK(wave_of_workgroup(64) == Wave::w64);
  CHECK(wave_of_workgroup(128) == Wave::w64);
  CHECK(wave_of_workgroup(256) == Wave::w64);
  CHECK(wave_of_workgroup(1024) == Wave::w64);
  CHECK(wave_of_workgroup(1) == Wave::w32);
  CHECK(wave_of_workgroup(32) == Wave::w32);
  CHECK(wave_of_workgroup(63) == Wave::w32);
  CHECK(wave_of_workgroup(96) == Wave::w32);
}

TEST_CASE("rdna: what pairs in a dual-issue instruction") {
  const Half x{0, 4, 8}, y{1, 5, 9};
  CHECK_FALSE(pairs(known(rdna2), x, y, Wave::w32));
  CHECK_FALSE(pairs(known(rdna2), x, y, Wave::w64));
  for (const char* target : {rdna3, rdna3_small, rdna3_5, rdna3_5_large}) {
    INFO(target);
    const Facts facts = known(target);
    CHECK(pairs(facts, x, y, Wave::w32));
    CHECK(pairs(facts, y, x, Wave::w32));
    CHECK_FALSE(pairs(facts, x, y, Wave::w64));
    CHECK_FALSE(pairs(facts, x, {2, 5, 9}, Wave::w32));   // both destinations even
    CHECK_FALSE(pairs(facts, x, {1, 8, 9}, Wave::w32));   // source 0: one bank
    CHECK_FALSE(pairs(facts, x, {1, 5, 12}, Wave::w32));  // source 1: one bank
    CHECK_FALSE(pairs(facts, {0, 4, 8}, {1, 5, 0}, Wave::w32));
    CHECK_FALSE(pairs(facts, {0, 1, 8}, {1, 6, 9}, Wave::w32));  // the first needs the second's result
    CHECK_FALSE(pairs(facts, {0, 5, 8}, {1, 0, 9}, Wave::w32));  // the second needs the first's
  }
}

TEST_CASE("rdna: roofs") {
  CHECK(roof_gflops(known(rdna2), 40, 2.25, Issue::single) == 23040);
  CHECK(roof_gflops(known(rdna2), 40, 2.25, Issue::dual) == 23040);  // it has none
  CHECK(roof_gflops(known(rdna3), 48, 2.5, Issue::single) == 30720);
  CHECK(roof_gflops(known(rdna3), 48, 2.5, Issue::dual) == 61440);
  CHECK(roof_gflops(known(rdna3_small), 16, 2.5, Issue::dual) == 20480);
  CHECK(roof_gflops(known(rdna3_5), 8, 2.75, Issue::single) == 5632);
  CHECK(roof_gflops(known(rdna3_5_large), 20, 2.75, Issue::single) == 14080);
  CHECK(roof_gflops(known(rdna3_5_large), 20, 2.75, Issue::dual) == 28160);
}

}  // namespace kiln::dynamic_shaders::rdna
