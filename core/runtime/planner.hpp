// Planner: creates the kernel plan and the program keys of a job on a device.
//
// Thread-safety: every method from any thread. Ownership: owns the generators and the plan cache; borrows the rest.
#pragma once

#include "runtime/device_table.hpp"
#include "runtime/job.hpp"
#include "runtime/plan_memo.hpp"
#include "runtime/warmup.hpp"
#include "runtime/work_history.hpp"

#include <kiln/kernel_generator.hpp>
#include <kiln/log.hpp>

#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace kiln {

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
