// Planner: from a job and a device to the plan of its kernels; what it remembers of earlier ones.
//
// WorkHistory: records for each spec and device in this process whether it ran, is ready, or failed to build.
//
// Thread-safety: every method from any thread. Ownership: values.
#pragma once

#include <kiln/device.hpp>
#include <kiln/kernel.hpp>
#include <kiln/kernel_generator.hpp>
#include <kiln/log.hpp>
#include <kiln/program.hpp>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/read_mostly_table.hpp"
#include "runtime/device_table.hpp"
#include "runtime/job.hpp"
#include "runtime/warmup.hpp"

namespace kiln {

class WorkHistory {
 public:
  // Marks the work as run. Returns whether it ran before. variant: that was asked for; empty: the usual one.
  bool begin_run(const KernelSpec& spec, const std::string& device, const std::string& variant);
  bool begin_run(const ShapeBucket& pipeline, const std::string& device);
  // For a run that failed and was the first.
  void undo_run(const KernelSpec& spec, const std::string& device, const std::string& variant);
  // Returns whether the programs are in memory and were dispatched, by a run or with an empty grid.
  bool is_ready(const KernelSpec& spec, const std::string& device) const;
  bool is_ready(const ShapeBucket& pipeline, const std::string& device) const;
  void set_ready(const KernelSpec& spec, const std::string& device);
  // Whether a build ahead failed. The job that needs the programs builds again and reports the error.
  bool failed_ahead(const KernelSpec& spec, const std::string& device) const;
  void set_failed_ahead(const KernelSpec& spec, const std::string& device);

  // The variant used for a kernel whose preferred variant cannot be built, for one revision of the generator.
  std::optional<std::string> fallback_variant(const KernelSpec& spec, const std::string& device,
                                              std::uint64_t revision) const;
  void set_fallback_variant(const KernelSpec& spec, const std::string& device, std::uint64_t revision,
                            std::string variant);

 private:
  bool is_ready(const std::string& name) const;

  mutable std::mutex mutex_;
  // Keys: work_name(), in ran_ with a variant that was asked for. ready_: without a run.
  std::set<std::string> ran_, ready_, failed_ahead_;
  std::map<std::string, std::string> variants_;
};

// "<device>|<canonical text of the spec>"
std::string work_name(const KernelSpec& spec, const std::string& device);

// PlanMemo: a cache of kernel plans and program keys by spec and device. A repeated job skips source generation and
// hashing.
//
// Bounded: at most 4,096 plans; further ones are not stored. User kernels are not stored, because their source may
// change.
// Thread-safety: every method from any thread; find() takes no lock. Ownership: shares its plans.

struct KeyedPlan : std::enable_shared_from_this<KeyedPlan> {
  explicit KeyedPlan(std::shared_ptr<const KernelPlan> planned, std::vector<ProgramKey> prepare_keys = {},
                     std::vector<ProgramKey> pass_keys = {})
      : plan(std::move(planned)), prepare(std::move(prepare_keys)), passes(std::move(pass_keys)) {}

  std::shared_ptr<const KernelPlan> plan;
  std::vector<ProgramKey> prepare;  // of plan->prepare
  std::vector<ProgramKey> passes;   // of plan->passes
};

class PlanMemo {
 public:
  // nullptr: not stored for this `revision` of the generator. The plan exists as long as the memo; shared_from_this()
  // shares it for longer.
  const KeyedPlan* find(const KernelSpec& spec, const Device& device, std::uint64_t revision) const noexcept;
  // Stores the plan if there is room, and returns it. An equal plan of an earlier revision is reused for the new one.
  std::shared_ptr<const KeyedPlan> insert(const KernelSpec& spec, const Device& device, std::uint64_t revision,
                                          std::shared_ptr<const KeyedPlan> plan);

 private:
  struct alignas(64) Entry : KeyedPlan {
    Entry(const KeyedPlan& keyed, const Device& target, std::uint64_t newest, std::uint64_t both, const KernelSpec& of)
        : KeyedPlan(keyed), device(&target), revision(newest), hash_of_both(both), spec(of) {}

    const Device* device;
    mutable std::atomic<std::uint64_t> revision;  // newest revision that gave this plan
    std::uint64_t hash_of_both;                   // hash of spec and device
    KernelSpec spec;

    std::uint64_t hash() const noexcept { return hash_of_both; }
  };

  mutable std::mutex mutex_;  // guards insert()
  ReadMostlyTable<const Entry> table_{512};
  std::vector<std::shared_ptr<const Entry>> entries_;
  std::vector<std::shared_ptr<const void>> outgrown_;  // former table cells that readers may still use
};

// Hashes every field that distinguishes specs; nullopt for a user kernel.
std::optional<std::uint64_t> spec_hash(const KernelSpec& spec) noexcept;

// Planner: creates the kernel plan and the program keys of a job on a device.
//
// Thread-safety: every method from any thread. Ownership: owns the generators and the plan cache; borrows the rest.

struct LoadedGenerator {
  std::string plugin;
  std::vector<Dialect> dialects;
  std::unique_ptr<KernelGenerator> generator;
};

struct Plan {
  KernelGenerator* generator = nullptr;
  Dialect dialect = Dialect::invalid;
  std::shared_ptr<const KeyedPlan> keyed;
};

class Planner {
 public:
  // generators: the configured one first. prefers_first: false if the configured one is not loaded.
  Planner(std::vector<LoadedGenerator> generators, bool prefers_first, const DeviceTable& devices,
          const WorkHistory& history, TraceSink* trace);

  // Creates the plan and records it in the report of the job. unsupported: see check_reads().
  Result<Plan> plan(Job& job, const Device& device);
  // Creates the plan of one variant; "" is the preferred variant of the generator.
  Result<Plan> plan(const RunRequest& request, const Device& device, const std::string& variant);
  // Returns generic plans that can run the request while its own programs are built.
  std::vector<Plan> generic_plans(const RunRequest& request, const Device& device, const Plan& own);
  // Returns the programs of all jobs without duplicates. Skips jobs that never run on this device.
  Result<std::vector<KeptProgram>> programs_of(std::span<const WarmJob> jobs, const Device& device);

  // Selects a generator for the dialects of the device, best dialect first: the configured generator, else that of the
  // device's plugin, else any other. For a user kernel only its own dialect counts. nullptr: no match.
  std::pair<KernelGenerator*, Dialect> generator_for(const DeviceInfo& device, const KernelSpec* spec = nullptr) const;
  // unsupported: no loaded generator supports the spec in a dialect of the device.
  Status check_reads(const DeviceInfo& device, const KernelSpec& spec) const;
  // Tuning results of the generator of the device; nullptr: none.
  TuningStore* tuning_for(const DeviceInfo& device) const;
  // The first tuning store of any generator.
  TuningStore* tuning() const noexcept;
  // The programs of the stored winners for the device.
  TunedPrograms tuned_programs(const Device& device);

 private:
  Result<std::shared_ptr<const KeyedPlan>> generate(const RunRequest& request, const Device& device,
                                                    KernelGenerator& generator, Dialect dialect,
                                                    const std::string& variant);

  const std::vector<LoadedGenerator> generators_;
  const bool prefers_first_;
  const DeviceTable& devices_;
  const WorkHistory& history_;
  TraceSink* const trace_;
  PlanMemo memo_;
};

// Appends the programs that are not in `seen`, in the order of the plan.
void add_programs(const KeyedPlan& keyed, std::set<Digest>& seen, std::vector<KeptProgram>& programs);

// Describes the purpose of a spec's programs for a table. Omits default values (stride 1, no padding).
ProgramPurpose purpose_of(const KernelSpec& spec, std::string variant);

}  // namespace kiln
