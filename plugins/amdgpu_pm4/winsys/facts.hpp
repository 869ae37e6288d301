// NodeFacts: what the amdgpu kernel interface tells about one render node, read once when it is opened.
//
// Thread-safety and ownership: values.
#pragma once

#include <cstdint>
#include <string>

namespace kiln::amdgpu_pm4 {

struct MemoryFacts {
  std::uint64_t vram_bytes = 0;
  std::uint64_t visible_vram_bytes = 0;  // of it, what the host can map; all of it where the BAR is resizable
  std::uint64_t gtt_bytes = 0;           // system memory that the GPU reaches
  std::uint64_t most_vram_bytes = 0;     // of one allocation
  std::uint64_t most_gtt_bytes = 0;

  bool whole_vram_visible() const noexcept { return visible_vram_bytes >= vram_bytes; }
};

struct ComputeRingFacts {
  std::uint32_t rings = 0;  // bit i: ring i takes submissions; 0: there is none
  std::uint32_t ib_start_alignment = 0;
  std::uint32_t ib_size_alignment = 0;
};

struct NodeFacts {
  std::string path;            // "/dev/dri/renderD128"
  std::string marketing_name;  // empty: unknown
  std::uint32_t family = 0;
  std::uint32_t external_revision = 0;
  std::uint32_t device_id = 0;
  std::uint32_t pci_revision = 0;
  std::uint32_t interface_major = 0;  // of the kernel driver: 3
  std::uint32_t interface_minor = 0;
  std::string library;  // which libdrm_amdgpu serves, by its build-id
  std::uint32_t shader_engines = 0;
  std::uint32_t arrays_per_engine = 0;
  std::uint32_t compute_units = 0;
  std::uint64_t engine_khz = 0;   // the most
  std::uint64_t counter_khz = 0;  // of the clock that timestamps come from
  std::uint64_t address_alignment = 0;
  std::uint64_t fragment_bytes = 0;  // large buffers at multiples of it are mapped by larger pages
  MemoryFacts memory;
  ComputeRingFacts compute;
};

}  // namespace kiln::amdgpu_pm4
