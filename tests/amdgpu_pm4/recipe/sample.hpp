// Kernels and places that do not exist, with the numbers that a compiler gives such kernels; and chunks for streams.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "amdgpu_pm4/packets/command_stream.hpp"

namespace kiln::amdgpu_pm4 {

inline constexpr std::uint64_t sample_image_va = 0xFFFF800100200000;
inline constexpr std::uint64_t sample_image_bytes = 4096;
inline constexpr std::uint64_t sample_kernarg_va = 0xFFFF800100300040;
inline constexpr std::uint64_t sample_scratch_va = 0xFFFF800110000000;

inline constexpr DeviceShape navi31{Generation::gfx11, 6, 96};
inline constexpr DeviceShape navi33{Generation::gfx11, 2, 32, true};
inline constexpr DeviceShape navi21{Generation::gfx10_3, 4, 80};

// As clang 19 describes saxpy for gfx1100: 15 user SGPRs, of which the first two hold the arguments' address.
KernelCode sample_kernel_gfx11();
// For gfx1030: a buffer resource in s0 to s3, the arguments' address in s4 and s5, the scratch's in s6 and s7.
KernelCode sample_kernel_gfx10_3();
KernelCode with_scratch(KernelCode kernel, std::uint32_t bytes);
// A place for it with a workgroup of 64, and a scratch ring where it has scratch.
DispatchPlace sample_place(const KernelCode& kernel, const DeviceShape& shape);

// Chunks of one size, one after the other in device memory.
class SampleChunks final : public ChunkSource {
 public:
  explicit SampleChunks(std::size_t dwords, std::size_t most = 1000) : dwords_(dwords), most_(most) {}

  Result<StreamChunk> next_chunk() noexcept override;

  static constexpr std::uint64_t first_va = 0xFFFF800100400000;
  static constexpr std::uint64_t apart = 0x100000;
  std::size_t taken = 0;

 private:
  std::size_t dwords_, most_;
  std::deque<std::vector<std::uint32_t>> chunks_;
};

}  // namespace kiln::amdgpu_pm4
