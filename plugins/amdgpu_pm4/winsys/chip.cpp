#include "amdgpu_pm4/winsys/chip.hpp"

#include <string>

namespace kiln::amdgpu_pm4 {
namespace {

// Families of the kernel interface; libdrm's header stops at 146.
constexpr std::uint32_t family_nv = 143;
constexpr std::uint32_t family_vgh = 144;
constexpr std::uint32_t family_gc_11_0_0 = 145;
constexpr std::uint32_t family_yc = 146;
constexpr std::uint32_t family_gc_11_0_1 = 148;
constexpr std::uint32_t family_gc_10_3_6 = 149;
constexpr std::uint32_t family_gc_11_5_0 = 150;
constexpr std::uint32_t family_gc_10_3_7 = 151;
constexpr std::uint32_t family_gc_12_0_0 = 152;

constexpr std::uint32_t rdna2_lanes = 64;
constexpr std::uint32_t rdna3_lanes = 128;  // with dual issue

struct Row {
  std::uint32_t family, first, last;  // external revisions
  Chip chip;
};

constexpr Row rows[] = {
    {family_nv, 0x01, 0x09, {"Navi10", "gfx1010", Target::invalid, 0}},
    {family_nv, 0x0a, 0x13, {"Navi12", "gfx1011", Target::invalid, 0}},
    {family_nv, 0x14, 0x27, {"Navi14", "gfx1012", Target::invalid, 0}},
    {family_nv, 0x28, 0x31, {"Navi21", "gfx1030", Target::gfx1030, rdna2_lanes}},
    {family_nv, 0x32, 0x3b, {"Navi22", "gfx1031", Target::gfx1030, rdna2_lanes}},
    {family_nv, 0x3c, 0x45, {"Navi23", "gfx1032", Target::gfx1030, rdna2_lanes}},
    {family_nv, 0x46, 0x4f, {"Navi24", "gfx1034", Target::gfx1030, rdna2_lanes}},
    {family_vgh, 0x01, 0xff, {"Van Gogh", "gfx1033", Target::invalid, 0}},
    {family_yc, 0x01, 0xff, {"Rembrandt", "gfx1035", Target::invalid, 0}},
    {family_gc_10_3_6, 0x01, 0xff, {"Raphael", "gfx1036", Target::invalid, 0}},
    {family_gc_10_3_7, 0x01, 0xff, {"Mendocino", "gfx1037", Target::invalid, 0}},
    {family_gc_11_0_0, 0x01, 0x0f, {"Navi31", "gfx1100", Target::gfx1100, rdna3_lanes}},
    {family_gc_11_0_0, 0x10, 0x1f, {"Navi33", "gfx1102", Target::gfx1102, rdna3_lanes}},
    {family_gc_11_0_0, 0x20, 0xff, {"Navi32", "gfx1101", Target::gfx1101, rdna3_lanes}},
    {family_gc_11_0_1, 0x01, 0xff, {"Phoenix", "gfx1103", Target::gfx1103, rdna3_lanes}},
    {family_gc_11_5_0, 0x01, 0x3f, {"Strix", "gfx1150", Target::gfx1150, rdna3_lanes}},
    {family_gc_11_5_0, 0xc0, 0xff, {"Strix Halo", "gfx1151", Target::gfx1151, rdna3_lanes}},
    {family_gc_12_0_0, 0x40, 0x4f, {"Navi44", "gfx1200", Target::gfx1200, rdna3_lanes}},
    {family_gc_12_0_0, 0x50, 0xff, {"Navi48", "gfx1201", Target::gfx1201, rdna3_lanes}},
};

}  // namespace

Result<Chip> identify_chip(std::uint32_t family, std::uint32_t external_revision) {
  const std::string met = "family " + std::to_string(family) + ", revision " + std::to_string(external_revision);
  for (const Row& row : rows) {
    if (row.family != family || external_revision < row.first || external_revision > row.last) continue;
    if (is_dispatched(row.chip.target)) return row.chip;
    return unsupported("chip " + std::string(row.chip.name) + " (" + met + "), " + std::string(row.chip.isa) +
                       ", is not supported by this version");
  }
  return unsupported("unknown chip: " + met + ", expected gfx10.3 or gfx11");
}

std::vector<Chip> dispatched_chips() {
  std::vector<Chip> chips;
  for (const Row& row : rows) {
    if (is_dispatched(row.chip.target)) chips.push_back(row.chip);
  }
  return chips;
}

}  // namespace kiln::amdgpu_pm4
