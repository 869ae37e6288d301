// What AMD's RDNA generations are made of, as data, and what follows from it for a kernel, as pure functions.
//
// For kernels that Kiln compiles itself for such devices (code objects), where registers and LDS are known; an OpenGL
// driver decides them by itself. Sources: AMD's ISA guides for RDNA2, RDNA3 and RDNA3.5; the register files' sizes are
// those that LLVM's AMDGPU subtargets and Mesa state (clang-19 tells the waves that follow as "Occupancy").
// Thread-safety: constants and pure functions. Ownership: none.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace kiln::dynamic_shaders::rdna {

enum class Generation : std::uint8_t { invalid = 0, rdna2, rdna3, rdna3_5 };
enum class Wave : std::uint8_t { invalid = 0, w32 = 32, w64 = 64 };
// A workgroup on one compute unit with half of the pair's LDS, or on both of a workgroup processor.
enum class Mode : std::uint8_t { invalid = 0, cu, wgp };

inline constexpr std::uint32_t simds_of_processor = 4;  // a workgroup processor's, two a compute unit

struct Facts {
  std::string_view target;  // "gfx1100"
  Generation generation = Generation::invalid;
  std::uint32_t vgprs = 0;    // of a SIMD, each of 32 lanes
  std::uint32_t granule = 0;  // in which a wave32 takes them
  std::uint32_t most_waves = 16;
  std::uint32_t most_vgprs = 256;        // of a wave
  std::uint32_t lds_bytes = 128 * 1024;  // of a workgroup processor
  std::uint32_t lds_of_workgroup = 64 * 1024;
  std::uint32_t lds_granule = 1024;
  bool dual_issue = false;  // VOPD
};

// Absent: no such target is known.
std::optional<Facts> facts_of(std::string_view target) noexcept;

// Waves that a SIMD holds when each uses so many registers; 0: more than a wave can have.
std::uint32_t waves_of_simd(const Facts& facts, std::uint32_t vgprs, Wave wave) noexcept;
// Workgroups that a workgroup processor holds by their LDS; 0: one is too large.
std::uint32_t workgroups_by_lds(const Facts& facts, std::uint32_t bytes, Mode mode) noexcept;
// What Mesa's OpenGL driver picks for a compute kernel: waves of 64 where the workgroup fills them.
Wave wave_of_workgroup(std::uint32_t workgroup_lanes) noexcept;

// What one workgroup of a kernel takes.
struct Need {
  std::uint32_t vgprs = 0;  // of a lane
  std::uint32_t lanes = 0;
  std::uint32_t lds_bytes = 0;
};
// Waves that each SIMD of a workgroup processor holds on an average, which is full of whole workgroups; 0: it holds
// none.
double waves_of_kernel(const Facts& facts, const Need& need, Wave wave, Mode mode) noexcept;

// A multiply-add of a dual-issue pair: destination (which is its third source), and two source registers.
struct Half {
  std::uint32_t destination = 0, source0 = 0, source1 = 0;
};
// Whether the two can be one VOPD instruction: waves of 32, one even and one odd destination, sources in different of
// the four banks, and neither needs the other's result.
bool pairs(const Facts& facts, const Half& x, const Half& y, Wave wave) noexcept;

enum class Issue : std::uint8_t { invalid = 0, single, dual };
// fp32 GFLOP/s of so many workgroup processors: each clock a multiply-add of every lane; two by Issue::dual, where the
// generation has that.
double roof_gflops(const Facts& facts, std::uint32_t workgroup_processors, double clock_ghz, Issue issue) noexcept;

}  // namespace kiln::dynamic_shaders::rdna
