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
  return Result<FenceResult>(
      not_found("submission " + std::to_string(value) +
                (value == 0 || value > last_ ? " does not exist, the last submission is " + std::to_string(last_)
                                             : std::string(": the result was already taken"))));
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

InFlight::Passes InFlight::longest() const noexcept {
  const std::vector<std::size_t>& ends = passes->stretch_ends;
  if (ends.empty() || stamps.last() == 0) return {0, passes->kernel_of.size()};
  std::size_t longest = 0;
  const auto ticks = [this](std::size_t stretch) { return stamps[stretch + 1] - stamps[stretch]; };
  for (std::size_t stretch = 1; stretch < ends.size(); ++stretch) {
    if (ticks(stretch) > ticks(longest)) longest = stretch;
  }
  return {longest == 0 ? 0 : ends[longest - 1], ends[longest]};
}

void DispatchKey::add(std::uint64_t word) noexcept {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15;
  hash ^= hash >> 32;
  words.push_back(word);
}

namespace {

struct Use {
  std::size_t memory = 0;
  bool written = false;
};

bool writes(Access access) noexcept { return access != Access::read; }

// The memory that each of the passes uses, by numbers from 0 that stand for handles: whatever addresses it is mapped
// at.
class Uses {
 public:
  explicit Uses(const std::vector<BoundPass>& passes) {
    for (const BoundPass& pass : passes) {
      for_each(pass, [this](std::uint32_t handle, bool) { handles_.push_back(handle); });
    }
    std::ranges::sort(handles_);
    handles_.erase(std::unique(handles_.begin(), handles_.end()), handles_.end());
    for (const BoundPass& pass : passes) {
      for_each(pass, [this](std::uint32_t handle, bool written) {
        uses_.push_back(
            {static_cast<std::size_t>(std::ranges::lower_bound(handles_, handle) - handles_.begin()), written});
      });
      ends_.push_back(uses_.size());
    }
  }

  std::size_t memories() const noexcept { return handles_.size(); }
  std::span<const Use> of(std::size_t pass) const {
    const std::size_t begin = pass == 0 ? 0 : ends_[pass - 1];
    return std::span(uses_).subspan(begin, ends_[pass] - begin);
  }

 private:
  template <class Visit>
  static void for_each(const BoundPass& pass, Visit visit) {
    for (std::size_t i = 0; i < pass.buffers.size(); ++i)
      visit(pass.buffers[i]->handle(), writes(pass.kernel->bindings[i]));
    // Slots of one ring are told apart only among dispatches of one slot size.
    if (pass.kernel->scratch != nullptr) visit(pass.kernel->scratch->handle(), true);
  }

  std::vector<std::uint32_t> handles_;
  std::vector<Use> uses_;
  std::vector<std::size_t> ends_;  // of each pass in uses_
};

// What the passes of the group that is being filled use.
class Group {
 public:
  explicit Group(std::size_t memories) : last_use_(memories), last_write_(memories) {}

  bool conflicts_with(std::span<const Use> uses) const {
    return std::ranges::any_of(
        uses, [this](Use use) { return (use.written ? last_use_ : last_write_)[use.memory] == number_; });
  }
  void add(std::span<const Use> uses) {
    for (const Use use : uses) {
      last_use_[use.memory] = number_;
      if (use.written) last_write_[use.memory] = number_;
    }
  }
  void clear() { ++number_; }

 private:
  std::vector<std::size_t> last_use_, last_write_;  // the group's number; 0: none yet
  std::size_t number_ = 1;
};

constexpr std::size_t most_of_a_group = 64;  // a bound of how much a hang leaves open

}  // namespace

std::vector<PassGroup> groups_of(const BoundDispatch& passes, const Quarantine& quarantine) {
  std::vector<bool> suspects;
  for (const BoundPass& pass : passes.bound) suspects.push_back(quarantine.is_suspect(pass.kernel->quarantine_key));
  const Uses uses(passes.bound);
  std::vector<PassGroup> groups;
  Group group(uses.memories());
  std::size_t begin = 0;
  PassGroup filled;  // its end is not known yet
  const auto close = [&](std::size_t end) {
    filled.end = end;
    groups.push_back(filled);
    filled = {};
    group.clear();
    begin = end;
  };
  for (std::size_t i = 0; i < passes.size(); ++i) {
    const std::span<const Use> used = uses.of(passes.order[i]);
    const bool suspect = suspects[passes.order[i]];
    if (i != begin && (filled.suspect || suspect || i - begin == most_of_a_group || group.conflicts_with(used)))
      close(i);
    filled.suspect = suspect;
    filled.unproven |= !passes[i].kernel->ended_well;
    group.add(used);
  }
  if (passes.size() != 0) close(passes.size());
  return groups;
}

}  // namespace kiln::amdgpu_pm4
