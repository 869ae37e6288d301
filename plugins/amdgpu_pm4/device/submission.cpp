#include "amdgpu_pm4/device/submission.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>

namespace kiln::amdgpu_pm4 {

std::optional<std::uint64_t> RingSpace::take(std::uint64_t bytes, std::uint64_t alignment, std::uint64_t point) {
  if (bytes > bytes_) return std::nullopt;
  std::uint64_t begin = 0;
  if (!taken_.empty()) {
    const std::uint64_t oldest = taken_.front().begin;
    const std::uint64_t newest = taken_.back().end;
    begin = (newest + alignment - 1) & ~(alignment - 1);
    const bool wrapped = newest <= oldest;  // what is free lies between the two
    if (wrapped ? begin > oldest || oldest - begin < bytes : begin > bytes_ || bytes_ - begin < bytes) {
      if (wrapped || oldest < bytes) return std::nullopt;
      begin = 0;
    }
  }
  taken_.push_back({begin, begin + bytes, point});
  return begin;
}

void RingSpace::keep_of_last(std::uint64_t bytes) { taken_.back().end = taken_.back().begin + bytes; }

void RingSpace::give_back(std::uint64_t point) {
  while (!taken_.empty() && taken_.back().point == point) taken_.pop_back();
}

void RingSpace::passed(std::uint64_t point) {
  while (!taken_.empty() && taken_.front().point <= point) taken_.pop_front();
}

Result<std::unique_ptr<RingBuffer>> RingBuffer::create(Winsys& winsys, BufferUse use, std::uint64_t bytes) {
  auto object = winsys.create_buffer({bytes, 0, placement_of(use, winsys.facts().memory), access_of(use)});
  if (!object) return object.error();
  return std::unique_ptr<RingBuffer>(new RingBuffer(winsys, use, std::move(object).value()));
}

Result<RingPart> RingBuffer::take(std::uint64_t bytes, std::uint64_t alignment, std::uint64_t point,
                                  std::vector<std::shared_ptr<BufferObject>>& own) {
  if (bytes > space_.bytes() / 2) return take_own(bytes, own);
  const auto offset = space_.take(bytes, alignment, point);
  if (!offset) return RingPart{};
  return RingPart{object_->mapped().subspan(*offset, bytes), object_->address() + *offset};
}

Result<RingPart> RingBuffer::take_own(std::uint64_t bytes, std::vector<std::shared_ptr<BufferObject>>& own) {
  auto made = winsys_.create_buffer({bytes, 0, placement_of(use_, winsys_.facts().memory), access_of(use_)});
  if (!made) return made.error();
  own.push_back(std::move(made).value());
  BufferObject& object = *own.back();
  return RingPart{object.mapped().first(bytes), object.address()};
}

std::optional<Result<FenceResult>> Results::take(std::uint64_t value, std::uint64_t first_pending) {
  if (const auto at = finished_.find(value); at != finished_.end()) {
    std::optional<Result<FenceResult>> result(std::move(at->second));
    finished_.erase(at);
    return result;
  }
  if (value >= first_pending && value <= last_) return std::nullopt;
  return Result<FenceResult>(not_found("submission " + std::to_string(value) + ": " +
                                       (value == 0 || value > last_ ? "never made; the last is " + std::to_string(last_)
                                                                    : std::string("its result was taken already"))));
}

namespace {

constexpr std::uint64_t comparison_ns = 1'000'000'000;  // the two clocks may drift apart

}  // namespace

std::uint64_t DeviceClock::ns_between(std::uint64_t begin, std::uint64_t end) const noexcept {
  if (khz_ == 0 || end <= begin) return 0;
  return static_cast<std::uint64_t>(static_cast<double>(end - begin) * 1e6 / static_cast<double>(khz_));
}

std::uint64_t DeviceClock::on_host_clock(std::uint64_t counter) noexcept {
  if (khz_ == 0 || refused_) return 0;
  const std::uint64_t now = now_ns();
  if (compared_at_ns_ == 0 || now > compared_at_ns_ + comparison_ns) {
    const auto read = winsys_.counter();
    refused_ = !read;
    if (refused_) return 0;
    compared_at_ns_ = now + (now_ns() - now) / 2;
    counter_then_ = *read;
  }
  return counter >= counter_then_ ? compared_at_ns_ + ns_between(counter_then_, counter)
                                  : compared_at_ns_ - ns_between(counter, counter_then_);
}

namespace {

std::uint8_t rights_of(GpuAccess access) noexcept {
  switch (access) {
    case GpuAccess::read:
      return may_read;
    case GpuAccess::read_write:
      return may_read | may_write;
    case GpuAccess::read_execute:
      return may_read | may_execute;
    case GpuAccess::invalid:
      break;
  }
  return 0;
}

}  // namespace

void BufferList::clear() {
  handles_.clear();
  ranges_.clear();
}

void BufferList::add(const BufferObject& buffer) {
  handles_.push_back(buffer.handle());
  ranges_.push_back({buffer.address(), buffer.bytes(), rights_of(buffer.access())});
}

void BufferList::sort() {
  std::sort(handles_.begin(), handles_.end());
  handles_.erase(std::unique(handles_.begin(), handles_.end()), handles_.end());
  std::sort(ranges_.begin(), ranges_.end(), [](const BufferRange& a, const BufferRange& b) { return a.va < b.va; });
  const auto same = [](const BufferRange& a, const BufferRange& b) { return a.va == b.va; };
  ranges_.erase(std::unique(ranges_.begin(), ranges_.end(), same), ranges_.end());
}

Stamps::Stamps(std::span<std::byte> memory, std::uint64_t address)
    : memory_(memory.data()), address_(address), count_(memory.size() / sizeof(std::uint64_t)) {
  std::memset(memory_, 0, memory.size());
}

std::uint64_t Stamps::operator[](std::size_t i) const noexcept {
  return std::atomic_ref(reinterpret_cast<std::uint64_t*>(memory_)[i]).load(std::memory_order_acquire);
}

InFlight::Passes InFlight::unfinished() const noexcept {
  if (stamps.size() == 0 || stamps.first() == 0) return {};
  const std::vector<std::size_t>& ends = passes->stretch_ends;
  for (std::size_t stretch = 0; stretch < ends.size(); ++stretch) {
    if (stamps[stretch + 1] == 0) return {stretch == 0 ? 0 : ends[stretch - 1], ends[stretch]};
  }
  return {};
}

void DispatchKey::add(std::uint64_t word) noexcept {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15;
  hash ^= hash >> 32;
  words.push_back(word);
}

namespace {

struct Use {
  std::uint32_t handle = 0;  // the memory's, whatever addresses it is mapped at
  bool written = false;
};

bool writes(Access access) noexcept { return access != Access::read; }

// What the passes of the group that is being filled use.
class Group {
 public:
  bool conflicts_with(const BoundPass& pass) const {
    bool found = false;
    for_each_use(pass, [&](Use use) {
      found |= std::any_of(uses_.begin(), uses_.end(), [&](const Use& other) {
        return other.handle == use.handle && (other.written || use.written);
      });
    });
    return found;
  }

  void add(const BoundPass& pass) {
    for_each_use(pass, [&](Use use) { uses_.push_back(use); });
  }

  void clear() { uses_.clear(); }

 private:
  template <class Visit>
  static void for_each_use(const BoundPass& pass, Visit visit) {
    for (std::size_t i = 0; i < pass.buffers.size(); ++i) {
      visit(Use{pass.buffers[i]->handle(), writes(pass.kernel->bindings[i])});
    }
    // Slots of one ring are told apart only among dispatches of one slot size.
    if (pass.kernel->scratch != nullptr) visit(Use{pass.kernel->scratch->handle(), true});
  }

  std::vector<Use> uses_;
};

constexpr std::size_t most_of_a_group = 64;  // a bound of the comparisons, and of how much a hang leaves open

}  // namespace

std::vector<std::size_t> groups_of(std::span<const BoundPass> passes, const Quarantine& quarantine) {
  std::vector<std::size_t> ends;
  Group group;
  std::size_t begin = 0;
  bool alone = false;  // what the group holds
  bool suspect = false;
  for (std::size_t i = 0; i < passes.size(); ++i) {
    const bool same = i != 0 && passes[i].kernel == passes[i - 1].kernel;
    if (!same) suspect = quarantine.is_suspect(passes[i].kernel->quarantine_key);
    if (i != begin && (alone || suspect || i - begin == most_of_a_group || group.conflicts_with(passes[i]))) {
      ends.push_back(i);
      group.clear();
      begin = i;
    }
    alone = suspect;
    group.add(passes[i]);
  }
  if (!passes.empty()) ends.push_back(passes.size());
  return ends;
}

}  // namespace kiln::amdgpu_pm4
