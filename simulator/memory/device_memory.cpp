#include "simulator/memory/device_memory.hpp"

#include <algorithm>
#include <cstring>

namespace kiln::simulator {

DeviceMemory::~DeviceMemory() = default;

std::optional<Fault> DeviceMemory::load(std::uint64_t address, std::span<std::byte> out) {
  while (!out.empty()) {
    Page at;
    if (auto fault = page(address, Access::read, at)) return fault;
    const std::uint64_t offset = address - at.address;
    const std::size_t bytes = std::min<std::size_t>(out.size(), Page::bytes - offset);
    std::memcpy(out.data(), at.data + offset, bytes);
    out = out.subspan(bytes);
    address += bytes;
  }
  return {};
}

std::optional<Fault> DeviceMemory::store(std::uint64_t address, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    Page at;
    if (auto fault = page(address, Access::write, at)) return fault;
    const std::uint64_t offset = address - at.address;
    const std::size_t count = std::min<std::size_t>(bytes.size(), Page::bytes - offset);
    std::memcpy(at.data + offset, bytes.data(), count);
    at.mark(address, count);
    bytes = bytes.subspan(count);
    address += count;
  }
  return {};
}

}  // namespace kiln::simulator
