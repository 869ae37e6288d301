#include "amdgpu_pm4/winsys/placement.hpp"

#include <catch2/catch.hpp>

namespace kiln::amdgpu_pm4 {
namespace {

constexpr BufferUse uses[] = {BufferUse::upload,    BufferUse::readback, BufferUse::storage,
                              BufferUse::constant,  BufferUse::code,     BufferUse::commands,
                              BufferUse::arguments, BufferUse::reports,  BufferUse::scratch};

MemoryFacts memory(std::uint64_t visible) { return {16, visible, 8, 12, 6}; }

}  // namespace

TEST_CASE("placement: with all of VRAM visible the host fills it directly") {
  const MemoryFacts whole = memory(16);
  for (const BufferUse use : {BufferUse::upload, BufferUse::storage, BufferUse::constant, BufferUse::code}) {
    CHECK(placement_of(use, whole) == Placement{Heap::vram, HostMapping::write_combined});
    CHECK(most_bytes(use, whole) == 12);
  }
  CHECK(placement_of(BufferUse::arguments, whole) == Placement{Heap::gtt, HostMapping::write_combined});
}

TEST_CASE("placement: through a window, jobs' inputs lie in system memory and the rest where it fits") {
  const MemoryFacts window = memory(1);
  CHECK(placement_of(BufferUse::upload, window) == Placement{Heap::gtt, HostMapping::write_combined});
  CHECK(most_bytes(BufferUse::upload, window) == 6);
  for (const BufferUse use : {BufferUse::storage, BufferUse::constant, BufferUse::code}) {
    CHECK(placement_of(use, window) == Placement{Heap::vram_or_gtt, HostMapping::write_combined});
    CHECK(most_bytes(use, window) == 12);
  }
}

TEST_CASE("placement: what the host reads it may cache, and what it never sees has no mapping") {
  for (const MemoryFacts& each : {memory(16), memory(1)}) {
    for (const BufferUse use : {BufferUse::readback, BufferUse::reports, BufferUse::commands}) {
      CHECK(placement_of(use, each) == Placement{Heap::gtt, HostMapping::cached});
    }
    CHECK(placement_of(BufferUse::scratch, each) == Placement{Heap::vram, HostMapping::none});
  }
}

TEST_CASE("placement: the GPU may do no more than a buffer's use needs") {
  for (const BufferUse use : uses) {
    const GpuAccess access = access_of(use);
    INFO(static_cast<int>(use));
    CHECK((access == GpuAccess::read_execute) == (use == BufferUse::code));
    const bool written = use == BufferUse::readback || use == BufferUse::storage || use == BufferUse::reports ||
                         use == BufferUse::scratch;
    CHECK((access == GpuAccess::read_write) == written);
  }
  CHECK(access_of(BufferUse::invalid) == GpuAccess::invalid);
  CHECK(placement_of(BufferUse::invalid, memory(16)) == Placement{});
}

}  // namespace kiln::amdgpu_pm4
