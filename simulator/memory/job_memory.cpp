#include "simulator/memory/job_memory.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "simulator/memory/device_memory.hpp"

namespace kiln::simulator {

L2Cache::L2Cache() = default;
L2Cache::~L2Cache() = default;

L2Buffer& L2Cache::copies_of(const BufferRef& buffer) {
  const std::lock_guard lock(mutex_);
  auto& copies = buffers_[buffer->id];
  if (copies == nullptr) copies = std::make_unique<L2Buffer>(*this, buffer);
  return *copies;
}

void L2Cache::invalidate() {
  const std::lock_guard lock(mutex_);
  epoch_.fetch_add(1, std::memory_order_relaxed);
  for (L2Buffer* buffer : written_) buffer->forget_writes();
  written_.clear();
  ++counters_.invalidations;
}

void L2Cache::write_back() {
  const std::lock_guard lock(mutex_);
  for (L2Buffer* buffer : written_) buffer->write_back(counters_);
}

void L2Cache::settle() {
  const std::lock_guard lock(mutex_);
  std::erase_if(written_, [](L2Buffer* buffer) { return !buffer->settle(); });
}

void L2Cache::purge() {
  const std::lock_guard lock(mutex_);
  {
    const std::lock_guard written(written_mutex_);
    std::erase_if(written_, [](L2Buffer* buffer) { return !buffer->alive(); });
  }
  std::erase_if(buffers_, [](const auto& each) { return !each.second->alive(); });
}

L2Counters L2Cache::counters() const {
  const std::lock_guard lock(mutex_);
  L2Counters all = counters_;
  all.pages_read = pages_read_.load(std::memory_order_relaxed);
  return all;
}

void L2Cache::note_writes(L2Buffer& buffer) {
  const std::lock_guard lock(written_mutex_);
  written_.push_back(&buffer);
}

namespace {

void clear_marks(std::byte* page) { std::memset(L2Buffer::marks_of(page), 0, Page::bytes); }

bool any_marked(std::byte* page) {
  const std::byte* const marks = L2Buffer::marks_of(page);
  return marks[0] != std::byte{0} || std::memcmp(marks, marks + 1, Page::bytes - 1) != 0;
}

}  // namespace

L2Buffer::L2Buffer(L2Cache& cache, const BufferRef& buffer)
    : cache_(cache),
      buffer_(buffer),
      host_(buffer->host),
      blocks_((buffer->bytes / Page::bytes + copies_a_block - 1) / copies_a_block) {}

L2Buffer::~L2Buffer() {
  for (auto& block : blocks_) delete block.load(std::memory_order_relaxed);
}

L2Buffer::Copy* L2Buffer::find(std::uint64_t index) const noexcept {
  Block* const block = blocks_[index / copies_a_block].load(std::memory_order_acquire);
  return block == nullptr ? nullptr : &block->copies[index % copies_a_block];
}

L2Buffer::Copy& L2Buffer::made(std::uint64_t index) {
  auto& slot = blocks_[index / copies_a_block];
  if (slot.load(std::memory_order_relaxed) == nullptr) slot.store(new Block, std::memory_order_release);
  return *find(index);
}

bool L2Buffer::current(const Copy& copy) const noexcept {
  return copy.epoch.load(std::memory_order_acquire) == cache_.epoch_.load(std::memory_order_relaxed);
}

std::byte* L2Buffer::host_page(std::uint64_t index) const noexcept { return host_ + index * Page::bytes; }

std::byte* L2Buffer::page(std::uint64_t index, L2Use use) {
  Copy* const seen = find(index);
  if (seen != nullptr && current(*seen) && (use == L2Use::read || seen->written.load(std::memory_order_acquire)))
    return seen->data.get();

  const std::lock_guard lock(mutex_);
  Copy& copy = made(index);
  if (!current(copy)) {
    if (copy.data == nullptr) copy.data = std::make_unique_for_overwrite<std::byte[]>(2 * Page::bytes);
    clear_marks(copy.data.get());
    read_host(host_page(index), {copy.data.get(), Page::bytes});
    copy.epoch.store(cache_.epoch_.load(std::memory_order_relaxed), std::memory_order_release);
    cache_.pages_read_.fetch_add(1, std::memory_order_relaxed);
  }
  if (use == L2Use::write && !copy.written.load(std::memory_order_relaxed)) {
    if (written_.empty()) cache_.note_writes(*this);
    written_.push_back({index, &copy});
    copy.written.store(true, std::memory_order_release);
  }
  return copy.data.get();
}

// Bytes that the device left alone are as if they had been evicted and read again.
void L2Buffer::take_host_changes(Copy& copy, std::uint64_t index) {
  std::array<std::byte, Page::bytes> host;
  read_host(host_page(index), host);
  const std::byte* const marks = marks_of(copy.data.get());
  for (std::size_t at = 0; at < Page::bytes; ++at) {
    if (marks[at] == std::byte{0}) copy.data[at] = host[at];
  }
}

void L2Buffer::load(std::uint64_t index, std::size_t offset, std::span<std::byte> out) {
  const std::lock_guard lock(mutex_);
  Copy* const copy = find(index);
  if (copy == nullptr || !current(*copy) || !copy->written.load(std::memory_order_relaxed)) {
    read_host(host_page(index) + offset, out);
    return;
  }
  take_host_changes(*copy, index);
  std::memcpy(out.data(), copy->data.get() + offset, out.size());
}

void L2Buffer::store(std::uint64_t index, std::size_t offset, std::span<const std::byte> bytes) {
  const std::lock_guard lock(mutex_);
  Copy* const copy = find(index);
  if (copy != nullptr && current(*copy)) {
    std::memcpy(copy->data.get() + offset, bytes.data(), bytes.size());
    std::memset(marks_of(copy->data.get()) + offset, 0, bytes.size());
  }
  write_host(host_page(index) + offset, bytes);
}

void L2Buffer::forget_writes() {
  const std::lock_guard lock(mutex_);
  for (const Written& each : written_) {
    each.copy->written.store(false, std::memory_order_relaxed);
  }
  written_.clear();
}

void L2Buffer::write_back(L2Counters& counters) {
  const auto alive = buffer_.lock();
  if (alive == nullptr) return;  // nobody can see it any more
  const std::lock_guard lock(mutex_);
  for (const auto& [index, at] : written_) {
    Copy& copy = *at;
    if (!any_marked(copy.data.get())) continue;
    counters.bytes_written_back +=
        write_marked(host_page(index), {copy.data.get(), Page::bytes}, {marks_of(copy.data.get()), Page::bytes});
    ++counters.pages_written_back;
    clear_marks(copy.data.get());
  }
}

bool L2Buffer::settle() {
  const std::lock_guard lock(mutex_);
  std::erase_if(written_, [](const Written& each) {
    Copy& copy = *each.copy;
    if (any_marked(copy.data.get())) return false;
    copy.written.store(false, std::memory_order_relaxed);
    return true;
  });
  return !written_.empty();
}

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
  out.unbacked = place.mapping == nullptr;
  if (out.unbacked) {
    static std::byte zeros[Page::bytes];
    thread_local std::byte lost[Page::bytes];
    out.data = access == Access::write ? lost : zeros;
    out.marks = nullptr;
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
