#include "launch_plan.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "buffer.hpp"
#include "program.hpp"

namespace kiln::vulkan {
namespace {

std::uint64_t pair(std::uint64_t low, std::uint64_t high) { return low | high << 32; }

std::uint64_t mixed(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15;
  return hash ^ hash >> 32;
}

// Finds the launches of one dispatch that bind the same. A launch of nothing binds no more than its program.
class Planner {
 public:
  Planner(const Dispatch& dispatch, const Gpu& gpu) : launches_(dispatch.passes), gpu_(gpu) {}

  LaunchPlan plan() {
    const std::size_t few = std::min<std::size_t>(launches_.size(), 32);
    passes_.reserve(few);
    plan_.checks.reserve(few);
    plan_.key.words.reserve(4 * few);
    table_.resize(std::bit_ceil(2 * few + 1));
    std::vector<LaunchStep>& steps = plan_.key.steps;
    steps.resize(launches_.size());
    std::uint64_t hash = launches_.size();
    std::uint32_t pass = none;
    LaunchStep before;
    for (std::size_t i = 0; i < launches_.size(); ++i) {
      const PassLaunch& launch = launches_[i];
      // Words, not members of 32 bits: a load of what was stored in parts waits for the stores.
      LaunchStep step{pair(launch.waits ? 1 : 0, launch.grid[0]), pair(launch.grid[1], launch.grid[2])};
      // Most batches repeat a sequence of launches.
      std::uint32_t next = pass == none ? none : passes_[pass].next;
      const bool expected = next != none && binds_as(passes_[next], launch, step.is_nothing());
      if (!expected) {
        next = find_or_add(launch, i);
        if (next == none) {
          steps.resize(i);
          plan_.complete = false;
          return std::move(plan_);
        }
        if (pass != none) passes_[pass].next = next;
      }
      pass = next;
      step.low |= std::uint64_t{pass} << 1;
      if (!step.same_grid(before) && passes_[pass].first != &launch) plan_.checks.push_back(i);
      steps[i] = step;
      hash = mixed(hash, step.low + step.high * 0xff51afd7ed558ccd);
      before = launch.indirect ? LaunchStep{} : step;  // its grid is not checked
    }
    for (const std::uint64_t word : plan_.key.words) hash = mixed(hash, word);
    plan_.key.hash = hash;
    return std::move(plan_);
  }

 private:
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

  struct Pass {
    const PassLaunch* first = nullptr;  // the first launch
    std::uint64_t hash = 0;
    std::uint32_t next = none;  // the pass that came after it the last time
    bool nothing = false;
  };

  static bool binds_as(const Pass& pass, const PassLaunch& launch, bool nothing) {
    const PassLaunch& first = *pass.first;
    if (first.program != launch.program || pass.nothing != nothing) return false;
    if (nothing) return true;
    if (first.bindings.size() != launch.bindings.size() || first.sources.size() != launch.sources.size()) return false;
    if (first.indirect != launch.indirect) return false;
    const bool same = first.bindings.data() == launch.bindings.data() && first.sources.data() == launch.sources.data();
    return same || holds_as(first, launch);
  }

  // This and the next one apart, so that the loop keeps its values in registers.
  [[gnu::noinline]] static bool holds_as(const PassLaunch& a, const PassLaunch& b) {
    return std::ranges::equal(a.bindings, b.bindings) && std::ranges::equal(a.sources, b.sources);
  }

  // none: the launch is incomplete.
  [[gnu::noinline]] std::uint32_t find_or_add(const PassLaunch& launch, std::size_t index) {
    if (2 * passes_.size() >= table_.size()) grow();
    const std::uint64_t hash = hash_of(launch);
    const bool nothing = launch.grid == PassLaunch::nothing;
    std::size_t at = hash & (table_.size() - 1);
    for (; table_[at] != 0; at = (at + 1) & (table_.size() - 1)) {
      const Pass& pass = passes_[table_[at] - 1];
      if (pass.hash == hash && binds_as(pass, launch, nothing)) return table_[at] - 1;
    }
    if (!add_words(launch)) return none;
    const auto added = static_cast<std::uint32_t>(passes_.size());
    passes_.push_back({&launch, hash, added, nothing});
    plan_.checks.push_back(index);
    table_[at] = added + 1;
    return added;
  }

  static std::uint64_t hash_of(const PassLaunch& launch) {
    std::uint64_t hash = mixed(0, reinterpret_cast<std::uintptr_t>(launch.program));
    if (launch.grid == PassLaunch::nothing) return hash;
    for (const Buffer* buffer : launch.bindings) hash = mixed(hash, reinterpret_cast<std::uintptr_t>(buffer));
    for (const ResourceSource& source : launch.sources) hash = mixed(hash, pair(source.binding, source.offset));
    if (launch.indirect) hash = mixed(hash, pair(launch.indirect->binding, launch.indirect->offset));
    return hash;
  }

  void grow() {
    table_.assign(4 * table_.size(), 0);
    for (std::uint32_t pass = 0; pass < passes_.size(); ++pass) {
      std::size_t at = passes_[pass].hash & (table_.size() - 1);
      while (table_[at] != 0) at = (at + 1) & (table_.size() - 1);
      table_[at] = pass + 1;
    }
  }

  bool add_words(const PassLaunch& launch) {
    std::vector<std::uint64_t>& words = plan_.key.words;
    const auto* program = static_cast<const VulkanProgram*>(launch.program);
    if (program == nullptr || &program->gpu() != &gpu_) return false;
    words.push_back(program->number());
    if (launch.grid == PassLaunch::nothing) {
      words.push_back(~std::uint64_t{0});
      return true;
    }
    words.push_back(pair(launch.bindings.size(), launch.sources.size()));
    words.push_back(launch.indirect ? std::uint64_t{launch.indirect->binding} + 1 : 0);
    if (launch.indirect) words.push_back(launch.indirect->offset);
    for (const Buffer* each : launch.bindings) {
      const auto* buffer = static_cast<const VulkanBuffer*>(each);
      if (buffer == nullptr || &buffer->gpu() != &gpu_) return false;
      words.push_back(buffer->number());
    }
    for (const ResourceSource& source : launch.sources) {
      const TextureSource& texture = source.texture;
      const auto byte = [](auto value, unsigned at) {
        return std::uint64_t{static_cast<std::uint8_t>(value)} << 8 * at;
      };
      words.push_back(pair(source.binding, texture.channels));
      words.push_back(source.offset);
      words.push_back(pair(texture.size[0], texture.size[1]));
      words.push_back(texture.size[2]);
      words.push_back(byte(source.given, 0) | byte(texture.dtype, 1) | byte(texture.format, 2) |
                      byte(texture.filter, 3) | byte(texture.wrap, 4) | byte(texture.access, 5));
    }
    return true;
  }

  std::span<const PassLaunch> launches_;
  const Gpu& gpu_;
  LaunchPlan plan_;
  std::vector<Pass> passes_;
  std::vector<std::uint32_t> table_;  // by hash: a pass + 1; 0: empty. A power of two, at most half full
};

}  // namespace

bool DispatchKey::operator==(const DispatchKey& other) const noexcept {
  return hash == other.hash && words == other.words && steps.size() == other.steps.size() &&
         std::memcmp(steps.data(), other.steps.data(), steps.size() * sizeof(LaunchStep)) == 0;
}

LaunchPlan plan_launches(const Dispatch& dispatch, const Gpu& gpu) { return Planner(dispatch, gpu).plan(); }

}  // namespace kiln::vulkan
