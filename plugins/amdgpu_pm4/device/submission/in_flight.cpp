#include "amdgpu_pm4/device/submission/in_flight.hpp"

#include <atomic>
#include <cstring>

namespace kiln::amdgpu_pm4 {

Stamps::Stamps(std::span<std::byte> memory, std::uint64_t address)
    : memory_(memory.data()), address_(address), count_(memory.size() / sizeof(std::uint64_t)) {
  std::memset(memory_, 0, memory.size());
}

std::uint64_t Stamps::operator[](std::size_t i) const noexcept {
  return std::atomic_ref(reinterpret_cast<std::uint64_t*>(memory_)[i]).load(std::memory_order_acquire);
}

InFlight::Passes InFlight::unfinished() const noexcept {
  if (stamps.size() == 0 || stamps.first() == 0) return {};
  for (std::size_t stretch = 0; stretch < stretch_ends.size(); ++stretch) {
    if (stamps[stretch + 1] == 0) return {stretch == 0 ? 0 : stretch_ends[stretch - 1], stretch_ends[stretch]};
  }
  return {};
}

}  // namespace kiln::amdgpu_pm4
