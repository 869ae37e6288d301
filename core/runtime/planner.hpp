// Planner: from a job and a device to the kernel plan and the keys of its programs.
//
// Thread-safety: every method from any thread. Ownership: owns the generators and the remembered plans; borrows the
// rest.
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
  // generators: the configured one first. prefers_first: false where the configured one is not loaded.
  Planner(std::vector<LoadedGenerator> generators, bool prefers_first, const DeviceTable& devices,
          const WorkHistory& history, TraceSink* trace);

  // The plan of the job on the device, which becomes the report's. unsupported: see check_reads().
  Result<Plan> plan(Job& job, const Device& device);
  // A plan of one variant; "" is the one that the generator prefers.
  Result<Plan> plan(const RunRequest& request, const Device& device, const std::string& variant);
  // Plans for any shape that can run the request meanwhile.
  std::vector<Plan> generic_plans(const RunRequest& request, const Device& device, const Plan& own);
  // The programs of the jobs' plans, each once. Jobs that never run on this device are left out.
  Result<std::vector<KeptProgram>> programs_of(std::span<const WarmJob> jobs, const Device& device);

  // The configured generator where it writes what the device reads, else that of the plugin that brought the device,
  // else any; by the device's dialects, best first. Of a user's kernel only its own dialect counts. nullptr: none
  // writes any of them.
  std::pair<KernelGenerator*, Dialect> generator_for(const DeviceInfo& device, const KernelSpec* spec = nullptr) const;
  // unsupported: no loaded generator writes the spec in a dialect that the device reads.
  Status check_reads(const DeviceInfo& device, const KernelSpec& spec) const;
  // What the device's generator stores of measurements; nullptr: nothing.
  TuningStore* tuning_for(const DeviceInfo& device) const;
  // The first generator's that has one.
  TuningStore* tuning() const noexcept;
  // The programs of the tuned variants that the device's generator stores.
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

// Each program that is not in `seen` yet, in the order of the plan.
void add_programs(const KeyedPlan& keyed, std::set<Digest>& seen, std::vector<KeptProgram>& programs);

// What a spec's programs are for, in a few words for a line of a table. What is the default (stride 1, no padding) is
// left out.
ProgramPurpose purpose_of(const KernelSpec& spec, std::string variant);

}  // namespace kiln
