// PlanMemo: from a job's spec and its device to the plan and the keys that were made for it before, so that a repeated
// job neither writes its kernel's source again nor digests it.
//
// Thread-safety: every method from any thread; find() takes no lock. Ownership: owns what it remembers until it dies.
// Bounded: after 4,096 plans nothing more is taken in. Specs of users' own kernels, whose source may change, are not
// remembered.
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
  // nullptr: not remembered. `revision` is the generator's: a plan of another one is not answered.
  const KeyedPlan* find(const KernelSpec& spec, const Device& device, std::uint64_t revision) const noexcept;
  // Remembers it, where there is room, and answers it either way for as long as the answer is held. A plan that is as
  // it was under another revision takes no more room.
  std::shared_ptr<const KeyedPlan> keep(const KernelSpec& spec, const Device& device, std::uint64_t revision,
                                        KeyedPlan plan);

 private:
  struct alignas(64) Entry {
    KeyedPlan plan;  // in the entry's first line: what a finder goes on to
    const Device* device;
    mutable std::atomic<std::uint64_t> revision;  // the newest that gave this plan
    std::uint64_t hash_of_both;                   // spec and device
    KernelSpec spec;

    std::uint64_t hash() const noexcept { return hash_of_both; }
  };

  mutable std::mutex mutex_;  // of keep()
  ReadMostlyTable<const Entry> table_{512};
  std::vector<std::shared_ptr<const Entry>> entries_;
  std::vector<std::shared_ptr<const void>> outgrown_;  // cells that readers may still look at
};

// Of every field that tells two specs apart; nullopt for a user's own kernel.
std::optional<std::uint64_t> spec_hash(const KernelSpec& spec) noexcept;

}  // namespace kiln
