#include "simulator/memory/job_memory.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "simulator/memory/device_memory.hpp"
#include "simulator/memory/l2_cache.hpp"

namespace kiln::simulator {
namespace {

std::optional<Fault> fault(FaultKind kind, std::uint64_t address, std::string reason) {
  return Fault{kind, address, {}, std::move(reason)};
}

const char* lacking(const Rights& rights, Access access) {
  switch (access) {
    case Access::read:
      return rights.read ? nullptr : "a read of a page mapped without READABLE";
    case Access::write:
      return rights.write ? nullptr : "a write to a page mapped without WRITEABLE";
    case Access::execute:
      return rights.execute ? nullptr : "an instruction in a page mapped without EXECUTABLE";
    case Access::invalid:
      break;
  }
  return "an access of no kind";
}

}  // namespace

struct JobMemory::Place {
  const Mapping* mapping = nullptr;  // null: sparse, without memory
  L2Buffer* copies = nullptr;        // null: uncached
  std::uint64_t page = 0;            // of the buffer
};

JobMemory::JobMemory(std::shared_ptr<const AddressSpace> space, std::span<const std::uint64_t> listed_buffers,
                     L2Cache& l2)
    : space_(std::move(space)),
      listed_(listed_buffers.begin(), listed_buffers.end()),
      copies_(space_->mappings().size()),
      l2_(l2) {
  std::sort(listed_.begin(), listed_.end());
}

JobMemory::~JobMemory() { l2_.settle(); }

std::optional<Fault> JobMemory::find(std::uint64_t address, Access access, Place& out) {
  const std::uint64_t at = sign_extended(address);
  const Mapping* const mapping = space_->find(at);
  if (mapping == nullptr && access != Access::execute && space_->is_sparse(at)) return {};
  if (mapping == nullptr) return fault(FaultKind::unmapped, address, "no buffer is mapped there");
  if (const char* why = lacking(mapping->rights, access)) return fault(FaultKind::permission, address, why);
  if (!mapping->buffer->always_valid && !std::binary_search(listed_.begin(), listed_.end(), mapping->buffer->id))
    return fault(FaultKind::not_listed, address,
                 "buffer " + std::to_string(mapping->buffer->id) + " is mapped there and not in the submission's list");
  out.mapping = mapping;
  out.page = (mapping->offset + (at - mapping->start)) / Page::bytes;
  out.copies = nullptr;
  if (mapping->caching == Caching::uncached) return {};
  auto& known = copies_[static_cast<std::size_t>(mapping - space_->mappings().data())];
  out.copies = known.load(std::memory_order_acquire);
  if (out.copies == nullptr) {
    out.copies = &l2_.copies_of(mapping->buffer);
    known.store(out.copies, std::memory_order_release);
  }
  return {};
}

std::optional<Fault> JobMemory::page(std::uint64_t address, Access access, Page& out) {
  Place place;
  if (auto refused = find(address, access, place)) return refused;
  out.address = address & ~(Page::bytes - 1);
  if (place.mapping == nullptr) {
    static std::byte zeros[Page::bytes];
    thread_local std::byte lost[Page::bytes];
    out.data = access == Access::write ? lost : zeros;
    out.marks = nullptr;
    out.unbacked = true;
    return {};
  }
  out.data = place.copies == nullptr
                 ? place.mapping->buffer->host + place.page * Page::bytes
                 : place.copies->page(place.page, access == Access::write ? L2Use::write : L2Use::read);
  out.marks = place.copies == nullptr || access != Access::write ? nullptr : L2Buffer::marks_of(out.data);
  return {};
}

bool JobMemory::resident(std::uint64_t address) const noexcept {
  const std::uint64_t at = sign_extended(address);
  return space_->find(at) != nullptr || !space_->is_sparse(at);
}

void JobMemory::invalidate_l2() { l2_.invalidate(); }

void JobMemory::write_back_l2() { l2_.write_back(); }

std::optional<Fault> JobMemory::load(std::uint64_t address, std::span<std::byte> out) {
  while (!out.empty()) {
    Place place;
    if (auto refused = find(address, Access::read, place)) return refused;
    const std::size_t offset = address % Page::bytes;
    const std::size_t bytes = std::min<std::size_t>(out.size(), Page::bytes - offset);
    if (place.mapping == nullptr)
      std::fill_n(out.begin(), bytes, std::byte{0});
    else if (place.copies == nullptr)
      read_host(place.mapping->buffer->host + place.page * Page::bytes + offset, out.first(bytes));
    else
      place.copies->load(place.page, offset, out.first(bytes));
    out = out.subspan(bytes);
    address += bytes;
  }
  return {};
}

std::optional<Fault> JobMemory::store(std::uint64_t address, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    Place place;
    if (auto refused = find(address, Access::write, place)) return refused;
    const std::size_t offset = address % Page::bytes;
    const std::size_t count = std::min<std::size_t>(bytes.size(), Page::bytes - offset);
    if (place.mapping == nullptr)
      static_cast<void>(count);  // lost
    else if (place.copies == nullptr)
      write_host(place.mapping->buffer->host + place.page * Page::bytes + offset, bytes.first(count));
    else
      place.copies->store(place.page, offset, bytes.first(count));
    bytes = bytes.subspan(count);
    address += count;
  }
  return {};
}

}  // namespace kiln::simulator
