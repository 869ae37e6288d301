// PlanMemo: a cache of kernel plans and program keys by spec and device. A repeated job skips source generation and
// hashing.
//
// Bounded: at most 4,096 plans; further ones are not stored. User kernels are not stored, because their source may
// change.
// Thread-safety: every method from any thread; find() takes no lock. Ownership: shares its plans.
#pragma once

#include "base/read_mostly_table.hpp"

#include <kiln/device.hpp>
#include <kiln/kernel.hpp>
#include <kiln/program.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace kiln {

struct KeyedPlan {
  std::shared_ptr<const KernelPlan> plan;
  std::vector<ProgramKey> prepare;  // of plan->prepare
  std::vector<ProgramKey> passes;   // of plan->passes
};

class PlanMemo {
 public:
  // nullptr: not stored for this `revision` of the generator.
  std::shared_ptr<const KeyedPlan> find(const KernelSpec& spec, const Device& device,
                                        std::uint64_t revision) const noexcept;
  // Stores the plan if there is room, and returns it. An equal plan of an earlier revision is reused for the new one.
  std::shared_ptr<const KeyedPlan> insert(const KernelSpec& spec, const Device& device, std::uint64_t revision,
                                          std::shared_ptr<const KeyedPlan> plan);

 private:
  struct alignas(64) Entry {
    std::shared_ptr<const KeyedPlan> plan;
    const Device* device;
    mutable std::atomic<std::uint64_t> revision;  // newest revision that gave this plan
    std::uint64_t hash_of_both;                   // hash of spec and device
    KernelSpec spec;

    std::uint64_t hash() const noexcept { return hash_of_both; }
  };

  mutable std::mutex mutex_;  // guards insert()
  ReadMostlyTable<const Entry> table_{512};
  std::vector<std::unique_ptr<const Entry>> entries_;
  std::vector<std::shared_ptr<const void>> outgrown_;  // former table cells that readers may still use
};

// Hashes every field that distinguishes specs; nullopt for a user kernel.
std::optional<std::uint64_t> spec_hash(const KernelSpec& spec) noexcept;

}  // namespace kiln
