// Where buffers are put, by what they are for and what the device's memory is like.
//
// Thread-safety: pure functions. Ownership: values.
//
// What programs read and write again and again lies in VRAM. Where the host can map all of VRAM it fills buffers there
// directly; where it sees only a window, the kernel driver keeps what fits into the window there and puts the rest into
// system memory, and what the host writes for each job lies in system memory at once. What the host reads lies in
// system memory that it may cache: reading VRAM, or write-combined memory, takes it some hundred times longer.
#pragma once

#include "amdgpu_pm4/winsys/winsys.hpp"

namespace kiln::amdgpu_pm4 {

enum class BufferUse : std::uint8_t {
  invalid = 0,
  upload,     // written by the host for each job, read by programs
  readback,   // written by programs, read by the host
  storage,    // programs read and write it
  constant,   // written once by the host
  code,       // machine code
  commands,   // indirect buffers
  arguments,  // kernarg segments
  reports,    // timestamps and progress
  scratch,    // private memory of lanes; never the host's
};

Placement placement_of(BufferUse use, const MemoryFacts& memory) noexcept;
GpuAccess access_of(BufferUse use) noexcept;
// The most bytes that one buffer of that use can have.
std::uint64_t most_bytes(BufferUse use, const MemoryFacts& memory) noexcept;

}  // namespace kiln::amdgpu_pm4
