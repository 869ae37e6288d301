#include "dynamic_shaders/space/rdna_facts.hpp"

#include <algorithm>

namespace kiln::dynamic_shaders::rdna {
namespace {

constexpr std::uint32_t banks = 4;
constexpr std::uint32_t lanes = 32;  // of a SIMD

constexpr Facts row(std::string_view target, Generation generation, std::uint32_t vgprs, std::uint32_t granule) {
  Facts facts;
  facts.target = target;
  facts.generation = generation;
  facts.vgprs = vgprs;
  facts.granule = granule;
  facts.dual_issue = generation != Generation::rdna2;
  return facts;
}

constexpr Facts table[] = {
    row("gfx1030", Generation::rdna2, 1024, 16),   row("gfx1031", Generation::rdna2, 1024, 16),
    row("gfx1032", Generation::rdna2, 1024, 16),   row("gfx1033", Generation::rdna2, 1024, 16),
    row("gfx1034", Generation::rdna2, 1024, 16),   row("gfx1035", Generation::rdna2, 1024, 16),
    row("gfx1036", Generation::rdna2, 1024, 16),   row("gfx1037", Generation::rdna2, 1024, 16),
    row("gfx1100", Generation::rdna3, 1536, 24),   row("gfx1101", Generation::rdna3, 1536, 24),
    row("gfx1102", Generation::rdna3, 1024, 16),   row("gfx1103", Generation::rdna3, 1024, 16),
    row("gfx1150", Generation::rdna3_5, 1024, 16), row("gfx1151", Generation::rdna3_5, 1536, 24),
    row("gfx1152", Generation::rdna3_5, 1024, 16),
};

constexpr std::uint32_t round_up(std::uint32_t value, std::uint32_t to) { return (value + to - 1) / to * to; }

}  // namespace

std::optional<Facts> facts_of(std::string_view target) noexcept {
  for (const Facts& facts : table) {
    if (facts.target == target) return facts;
  }
  return std::nullopt;
}

std::uint32_t waves_of_simd(const Facts& facts, std::uint32_t vgprs, Wave wave) noexcept {
  if (vgprs > facts.most_vgprs) return 0;
  // A wave of 64 has two halves in each of its registers: half as many registers, in half the granule.
  const std::uint32_t halves = wave == Wave::w64 ? 2 : 1;
  const std::uint32_t taken = round_up(std::max(vgprs, 1u), facts.granule / halves);
  return std::min(facts.most_waves, facts.vgprs / halves / taken);
}

std::uint32_t workgroups_by_lds(const Facts& facts, std::uint32_t bytes, Mode mode) noexcept {
  if (bytes > facts.lds_of_workgroup) return 0;
  const std::uint32_t taken = round_up(std::max(bytes, 1u), facts.lds_granule);
  // In CU mode each half serves its own compute unit, and what is left of one is of no use to the other.
  if (mode == Mode::cu) return 2 * (facts.lds_bytes / 2 / taken);
  return facts.lds_bytes / taken;
}

Wave wave_of_workgroup(std::uint32_t workgroup_lanes) noexcept {
  return workgroup_lanes % 64 == 0 ? Wave::w64 : Wave::w32;
}

double waves_of_kernel(const Facts& facts, const Need& need, Wave wave, Mode mode) noexcept {
  const auto wave_lanes = static_cast<std::uint32_t>(wave);
  const std::uint32_t waves = round_up(std::max(need.lanes, 1u), wave_lanes) / wave_lanes;  // of the workgroup
  // In CU mode a workgroup's waves lie on the SIMDs of one compute unit, and a pair of those is filled by itself.
  const std::uint32_t parts = mode == Mode::cu ? 2 : 1;
  const std::uint32_t places = simds_of_processor / parts * waves_of_simd(facts, need.vgprs, wave);
  const std::uint32_t workgroups = std::min(parts * (places / waves), workgroups_by_lds(facts, need.lds_bytes, mode));
  return static_cast<double>(workgroups * waves) / simds_of_processor;
}

bool pairs(const Facts& facts, const Half& x, const Half& y, Wave wave) noexcept {
  if (!facts.dual_issue || wave != Wave::w32) return false;
  if (x.destination % 2 == y.destination % 2) return false;
  if (x.source0 % banks == y.source0 % banks || x.source1 % banks == y.source1 % banks) return false;
  const auto reads = [](const Half& half, std::uint32_t reg) { return half.source0 == reg || half.source1 == reg; };
  return !reads(y, x.destination) && !reads(x, y.destination);
}

double roof_gflops(const Facts& facts, std::uint32_t workgroup_processors, double clock_ghz, Issue issue) noexcept {
  const double twice = issue == Issue::dual && facts.dual_issue ? 2 : 1;
  return workgroup_processors * double{simds_of_processor} * lanes * 2 * clock_ghz * twice;
}

}  // namespace kiln::dynamic_shaders::rdna
