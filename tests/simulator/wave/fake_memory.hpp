// FakeMemory: device memory without a model behind it: allocations, their rights, and faults for everything else.
//
// Thread-safety: page() from any thread once all is allocated. Ownership: owns the bytes.
#pragma once

#include <cstring>
#include <memory>
#include <vector>

#include "simulator/memory/device_memory.hpp"

namespace kiln::simulator::test {

enum class Rights : std::uint8_t { invalid = 0, read_only, read_write, execute };

class FakeMemory final : public DeviceMemory {
 public:
  // Whole pages, filled with zeros; the page after them is unmapped.
  std::uint64_t allocate(std::size_t bytes, Rights rights = Rights::read_write) {
    Area area;
    area.address = next_;
    area.bytes = (bytes + Page::bytes - 1) / Page::bytes * Page::bytes;
    area.rights = rights;
    area.data = std::make_unique<std::byte[]>(area.bytes);
    area.marks = std::make_unique<std::byte[]>(area.bytes);
    next_ += area.bytes + Page::bytes;
    areas_.push_back(std::move(area));
    return areas_.back().address;
  }

  template <class T>
  std::uint64_t allocate(const std::vector<T>& values, Rights rights = Rights::read_write) {
    const std::uint64_t address = allocate(values.size() * sizeof(T), rights);
    std::memcpy(host(address), values.data(), values.size() * sizeof(T));
    return address;
  }

  template <class T>
  std::vector<T> values(std::uint64_t address, std::size_t count) {
    std::vector<T> result(count);
    std::memcpy(result.data(), host(address), count * sizeof(T));
    return result;
  }

  std::byte* host(std::uint64_t address) {
    Area* area = find(address);
    return area == nullptr ? nullptr : area->data.get() + (address - area->address);
  }

  // Which of the bytes from `address` on were marked as written; forgets the marks of the whole allocation.
  std::vector<bool> take_marks(std::uint64_t address, std::size_t count) {
    Area& area = *find(address);
    std::vector<bool> marked(count);
    for (std::size_t at = 0; at < count; ++at) marked[at] = area.marks[address - area.address + at] != std::byte{0};
    std::memset(area.marks.get(), 0, area.bytes);
    return marked;
  }

  // A page that is mapped without memory.
  std::uint64_t allocate_sparse() {
    sparse_ = next_;
    next_ += 2 * Page::bytes;
    return sparse_;
  }
  bool resident(std::uint64_t address) const noexcept override {
    return address / Page::bytes != sparse_ / Page::bytes;
  }

  std::optional<Fault> page(std::uint64_t address, Access access, Page& out) override {
    if (!resident(address)) {
      out = {sparse_, nothing_.get(), nullptr, true};
      std::memset(out.data, 0, Page::bytes);
      return std::nullopt;
    }
    const Area* area = find(address);
    if (area == nullptr) return Fault{FaultKind::unmapped, address, {}, "no page"};
    if ((access == Access::write && area->rights != Rights::read_write) ||
        (access == Access::execute && area->rights != Rights::execute)) {
      return Fault{FaultKind::permission, address, {}, "page lacks the right"};
    }
    out.address = address & ~(Page::bytes - 1);
    out.data = area->data.get() + (out.address - area->address);
    out.marks = access == Access::write ? area->marks.get() + (out.address - area->address) : nullptr;
    return std::nullopt;
  }
  void invalidate_l2() override {}
  void write_back_l2() override {}

 private:
  struct Area {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    Rights rights = Rights::invalid;
    std::unique_ptr<std::byte[]> data;
    std::unique_ptr<std::byte[]> marks;
  };
  Area* find(std::uint64_t address) {
    for (Area& area : areas_) {
      if (address >= area.address && address - area.address < area.bytes) return &area;
    }
    return nullptr;
  }

  std::vector<Area> areas_;
  std::uint64_t next_ = 0x4000'0000'0000;
  std::uint64_t sparse_ = ~std::uint64_t{0};  // none
  std::unique_ptr<std::byte[]> nothing_ = std::make_unique<std::byte[]>(Page::bytes);
};

}  // namespace kiln::simulator::test
