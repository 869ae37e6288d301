// Programs: makes the programs of a plan: from the cache, or by a build.
//
// Thread-safety: every method from any thread. Ownership: owns the thread that builds ahead; borrows the rest.
#pragma once

#include "runtime/planner.hpp"
#include "runtime/resource_use.hpp"
#include "runtime/warmup.hpp"

#include <kiln/program_cache.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace kiln {

struct AcquiredPrograms {
  Plan plan;  // that was asked for, another variant's, or a generic one
  std::vector<ProgramHandle> passes;
  std::vector<ProgramHandle> prepare;
  std::vector<std::vector<ResourceSource>> sources;  // of the passes of a user's kernel; empty: bindings go by position
  Tier tier = Tier::memory;                          // the slowest
  std::uint64_t build_ns = 0;
  bool generic = false;  // programs for any shape, while those of the plan are built
};

class Programs {
 public:
  Programs(const Config& config, Log log, TraceSink* trace, ProgramCache& cache, Planner& planner, DeviceTable& devices,
           ResourceUse& resources, WorkHistory& history);

  // The programs of the plan. Where [generator] serve_while_building asks for it, generic ones while they are built.
  // Of a kernel that leaves parameters open, the plan's variant, else the first that can be built. Their tier, keys and
  // build time become the report's.
  Result<AcquiredPrograms> acquire(Job& job, Device& device, const Result<Plan>& plan);

  // On the thread that builds ahead: the programs of a spec are built and dispatched over nothing.
  void build_ahead(const RunRequest& request, const std::string& device);
  // Likewise the generic programs for the next new shape, where [generator] serve_while_building asks for them.
  void build_generic_ahead(const RunRequest& request, const std::string& device);
  bool is_building_ahead() const { return !ahead_.idle(); }

  // Builds and dispatches the programs of one variant over nothing, which stores them.
  Status publish(const RunRequest& request, const std::string& variant, Device& device, unsigned threads);
  // See Runtime::warm().
  Result<WarmReport> warm(const WarmRequest& request);

 private:
  Result<AcquiredPrograms> acquire(Job& job, Device& device, Plan plan);
  Result<AcquiredPrograms> acquire_another_variant(Job& job, const UserKernelSpec& kernel, Device& device,
                                                   const Status& failure);
  Result<AcquiredPrograms> from_cache(Plan plan, Device& device);
  bool are_stored(const KeyedPlan& keyed, const Device& device);
  std::optional<Plan> generic_plan(const RunRequest& request, const Device& device, const Plan& own);
  // On every thread that the machine has cores for, or on one.
  WarmReport warm_all(const std::vector<KeptProgram>& programs, Device& device, const WarmRequest& request,
                      unsigned threads);

  const Config& config_;
  const Log log_;
  TraceSink* const trace_;
  ProgramCache& cache_;
  Planner& planner_;
  DeviceTable& devices_;
  ResourceUse& resources_;
  WorkHistory& history_;
  BackgroundBuilder ahead_;  // last: what it does needs the rest
};

}  // namespace kiln
