#include "amdgpu_pm4/winsys/winsys.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>
#include <utility>

namespace kiln::amdgpu_pm4 {

BufferObject::~BufferObject() = default;
Timeline::~Timeline() = default;
Context::~Context() = default;
Winsys::~Winsys() = default;

Status status_of(int error, std::string_view doing) {
  if (error == 0) return {};
  const int number = std::abs(error);
  std::string message = std::string(doing) + ": " + std::generic_category().message(number);
  switch (number) {
    case ETIME:
    case ETIMEDOUT:
      return timed_out(std::move(message));
    case ECANCELED:
      return cancelled(message + ": the context was lost because the device was reset");
    case ENODEV:
      return device_lost(message + ": the device was removed");
    case ENOMEM:
    case ENOSPC:
    case EBUSY:
    case EACCES:
    case EPERM:
      return unavailable(std::move(message));
    case EINVAL:
    case ERANGE:
    case ENOENT:
      return invalid_argument(std::move(message));
    default:
      return io_error(std::move(message));
  }
}

Outcome outcome_of(int error, std::string_view doing) {
  Status how = status_of(error, doing);
  if (const int number = std::abs(error); number != ETIME && number != ENODATA) return {std::move(how), false};
  return {cancelled(how.message + ": the kernel driver stopped the work because it ran too long"), true};
}

Placement placement_of(BufferUse use, const MemoryFacts& memory) noexcept {
  const Heap fast = memory.whole_vram_visible() ? Heap::vram : Heap::vram_or_gtt;
  switch (use) {
    case BufferUse::upload:
      return {memory.whole_vram_visible() ? Heap::vram : Heap::gtt, HostMapping::write_combined};
    case BufferUse::storage:
    case BufferUse::constant:
    case BufferUse::code:
      return {fast, HostMapping::write_combined};
    case BufferUse::arguments:
      return {Heap::gtt, HostMapping::write_combined};
    case BufferUse::readback:
    case BufferUse::commands:  // checked, and patched, where they lie
    case BufferUse::reports:
      return {Heap::gtt, HostMapping::cached};
    case BufferUse::scratch:
      return {Heap::vram, HostMapping::none};
    case BufferUse::invalid:
      break;
  }
  return {};
}

GpuAccess access_of(BufferUse use) noexcept {
  switch (use) {
    case BufferUse::upload:
    case BufferUse::constant:
    case BufferUse::commands:
    case BufferUse::arguments:
      return GpuAccess::read;
    case BufferUse::readback:
    case BufferUse::storage:
    case BufferUse::reports:
    case BufferUse::scratch:
      return GpuAccess::read_write;
    case BufferUse::code:
      return GpuAccess::read_execute;
    case BufferUse::invalid:
      break;
  }
  return GpuAccess::invalid;
}

std::uint64_t most_bytes(BufferUse use, const MemoryFacts& memory) noexcept {
  switch (placement_of(use, memory).heap) {
    case Heap::vram:
      return memory.most_vram_bytes;
    case Heap::gtt:
      return memory.most_gtt_bytes;
    case Heap::vram_or_gtt:
      return std::max(memory.most_vram_bytes, memory.most_gtt_bytes);
    case Heap::invalid:
      break;
  }
  return 0;
}

}  // namespace kiln::amdgpu_pm4
