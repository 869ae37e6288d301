#include "amdgpu_pm4/device/submission/pass_order.hpp"

#include <algorithm>
#include <cstdint>

namespace kiln::amdgpu_pm4 {
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
