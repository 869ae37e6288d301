// Programs: gets the programs of a plan from the cache or builds them.
//
// Thread-safety: every method from any thread. Ownership: owns the build-ahead thread; borrows the rest.
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
  Plan plan;  // the requested plan, another variant, or a generic plan
  std::vector<ProgramHandle> passes;
  std::vector<ProgramHandle> prepare;
  std::vector<std::vector<ResourceSource>> sources;  // of a user kernel's passes; empty: bindings by position
  Tier tier = Tier::memory;                          // the slowest tier of all programs
  std::uint64_t build_ns = 0;
  bool generic = false;  // generic programs run while those of the plan are built
};

class Programs {
 public:
  Programs(const Config& config, Log log, TraceSink* trace, ProgramCache& cache, Planner& planner, DeviceTable& devices,
           ResourceUse& resources, WorkHistory& history);

  // Gets the programs of the plan, or generic ones while they are built ([generator] serve_while_building). For a
  // kernel with open parameters, uses the variant of the plan, else the first that can be built. Records tier, keys and
  // build time in the report.
  Result<AcquiredPrograms> acquire(Job& job, Device& device, const Result<Plan>& plan);

  // Builds the programs of a spec on the build-ahead thread and dispatches them with an empty grid.
  void build_ahead(const RunRequest& request, const std::string& device);
  // The same for the generic programs of the next new shape, if [generator] serve_while_building is set.
  void build_generic_ahead(const RunRequest& request, const std::string& device);
  bool is_building_ahead() const { return !ahead_.idle(); }

  // Builds the programs of one variant, which also stores them, and dispatches them with an empty grid.
  Status publish(const RunRequest& request, const std::string& variant, Device& device, unsigned threads);
  // See Runtime::warm().
  Result<WarmReport> warm(const WarmRequest& request);
  Result<WarmReport> warm(const WarmRequest& request, Device& device);

 private:
  Result<AcquiredPrograms> acquire(Job& job, Device& device, Plan plan);
  Result<AcquiredPrograms> acquire_another_variant(Job& job, const UserKernelSpec& kernel, Device& device,
                                                   const Status& failure);
  Result<AcquiredPrograms> from_cache(Plan plan, Device& device);
  bool are_stored(const KeyedPlan& keyed, const Device& device);
  std::optional<Plan> generic_plan(const RunRequest& request, const Device& device, const Plan& own);
  // Uses `threads` threads.
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
  BackgroundBuilder ahead_;  // last member: it uses the others
};

}  // namespace kiln
