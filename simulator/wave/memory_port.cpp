#include "simulator/wave/memory_port.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace kiln::simulator {

void MemoryPort::attach(DeviceMemory& memory) noexcept {
  memory_ = &memory;
  epoch_ = (epoch_ + 1) & 0xFFFU;
  if (epoch_ == 0) {  // tags of 4,096 attachments ago would be taken for new ones
    for (Entry& entry : reads_) entry = {};
    for (Entry& entry : writes_) entry = {};
    epoch_ = 1;
  }
}

std::byte* MemoryPort::miss(std::uint64_t address, Access access) {
  Page page;
  if (std::optional<Fault> fault = memory_->page(address, access, page)) {
    fault_ = std::move(fault);
    return nullptr;
  }
  Entry& entry = (access == Access::write ? writes_ : reads_)[slot(address)];
  entry.tag = tag(address);
  entry.data = page.unbacked && access == Access::write ? unbacked_ : page.data;
  entry.marks = page.marks;
  return entry.data + (address & (Page::bytes - 1));
}

bool MemoryPort::load(std::uint64_t address, void* out, std::size_t bytes) {
  auto* to = static_cast<std::byte*>(out);
  while (bytes > 0) {
    const std::byte* from = read(address);
    if (from == nullptr) return false;
    const std::size_t part = std::min<std::size_t>(bytes, Page::bytes - (address & (Page::bytes - 1)));
    std::memcpy(to, from, part);
    to += part;
    address += part;
    bytes -= part;
  }
  return true;
}

bool MemoryPort::store(std::uint64_t address, const void* in, std::size_t bytes) {
  const auto* from = static_cast<const std::byte*>(in);
  // All pages first: a store that faults writes nothing.
  const std::uint64_t last = bytes == 0 ? address : address + bytes - 1;
  if (last / Page::bytes != address / Page::bytes && write(last) == nullptr) return false;
  while (bytes > 0) {
    std::byte* to = write(address);
    if (to == nullptr) return false;
    const std::size_t part = std::min<std::size_t>(bytes, Page::bytes - (address & (Page::bytes - 1)));
    std::memcpy(to, from, part);
    mark(address, part);
    from += part;
    address += part;
    bytes -= part;
  }
  return true;
}

}  // namespace kiln::simulator
