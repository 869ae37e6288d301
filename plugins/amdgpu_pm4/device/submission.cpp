#include "amdgpu_pm4/device/submission.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>

namespace kiln::amdgpu_pm4 {
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
  for (std::size_t stretch = 0; stretch < stretch_ends.size(); ++stretch) {
    if (stamps[stretch + 1] == 0) return {stretch == 0 ? 0 : stretch_ends[stretch - 1], stretch_ends[stretch]};
  }
  return {};
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
  for (std::size_t i = 0; i < passes.size(); ++i) {
    const bool suspect = quarantine.is_suspect(passes[i].kernel->digest);
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
