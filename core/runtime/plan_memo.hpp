// PlanMemo: the plan and the keys that were made before for a spec on a device. A repeated job then neither writes its
// kernel's source again nor digests it.
//
// Thread-safety: every method from any thread; find() takes no lock. Ownership: shares its plans. Bounded: after 4,096
// plans it remembers no more. Users' kernels, whose source may change, are not remembered.
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
  std::shared_ptr<const KeyedPlan> find(const KernelSpec& spec, const Device& device,
                                        std::uint64_t revision) const noexcept;
  // Remembers the plan where there is room, and returns it. A plan that equals that of an earlier revision replaces it.
  std::shared_ptr<const KeyedPlan> insert(const KernelSpec& spec, const Device& device, std::uint64_t revision,
                                          std::shared_ptr<const KeyedPlan> plan);

 private:
  struct alignas(64) Entry {
    std::shared_ptr<const KeyedPlan> plan;
    const Device* device;
    mutable std::atomic<std::uint64_t> revision;  // the newest that gave this plan
    std::uint64_t hash_of_both;                   // spec and device
    KernelSpec spec;

    std::uint64_t hash() const noexcept { return hash_of_both; }
  };

  mutable std::mutex mutex_;  // of insert()
  ReadMostlyTable<const Entry> table_{512};
  std::vector<std::unique_ptr<const Entry>> entries_;
  std::vector<std::shared_ptr<const void>> outgrown_;  // cells that readers may still look at
};

// Of every field that tells two specs apart; nullopt for a user's own kernel.
std::optional<std::uint64_t> spec_hash(const KernelSpec& spec) noexcept;

}  // namespace kiln
