// RuntimeState: what a Runtime is made of, in the order in which it is built up.
//
// Thread-safety: as each part. Ownership: owns everything but the registry and the trace.
#pragma once

#include "cache/driver_scratch.hpp"
#include "runtime/autotuner.hpp"
#include "runtime/build_processes.hpp"
#include "runtime/device_table.hpp"
#include "runtime/learner.hpp"
#include "runtime/planner.hpp"
#include "runtime/programs.hpp"
#include "runtime/resource_use.hpp"
#include "runtime/router.hpp"
#include "runtime/runner.hpp"
#include "runtime/warmup.hpp"
#include "runtime/work_history.hpp"

#include <kiln/runtime.hpp>

#include <memory>
#include <vector>

namespace kiln {

// What the steps of a request work with.
struct RuntimeParts {
  RuntimeParts(const Config& chosen, const Registry& registry, Log to, TraceSink* sink)
      : config(chosen), log(to), trace(sink), devices(config, registry, log, counters) {}

  const Config config;
  const Log log;
  TraceSink* const trace;  // null: there is none
  // Its driver writes there as long as a device is open. null: the driver keeps its cache elsewhere, or none.
  const std::unique_ptr<DriverScratch> driver_folder = DriverScratch::of_process();
  WorkCounters counters;
  DeviceTable devices;
  std::unique_ptr<BuildProcesses> builds;  // null: there is no kiln-probe
  std::unique_ptr<ProgramCache> cache;
  std::unique_ptr<Executor> executor;
  std::unique_ptr<DeviceSelector> selector;
  std::vector<LoadedGenerator> generators;  // move to the planner
  bool prefers_first_generator = true;
  ResourceUse resources;
  WorkHistory history;
  JobMetrics metrics;
};

struct RuntimeState {
  explicit RuntimeState(std::unique_ptr<RuntimeParts> made);

  const std::unique_ptr<RuntimeParts> parts;
  Planner planner;
  Programs programs;
  Router router;
  Runner runner;
  Learner learner;
  std::unique_ptr<BackgroundWarming> warming;  // null: nothing is asked for
  Autotuner autotuner;

  // A scope in which a job runs: background work waits.
  class JobScope {
   public:
    explicit JobScope(RuntimeState& state) : warming_(state.warming.get()), tuning_(state.autotuner.background()) {}

   private:
    const BackgroundWarming::Job warming_;
    const BackgroundTuning::Job tuning_;
  };

  RunReport run(const RunRequest& request);
  // The same without the run.
  RunReport check(const RunRequest& request);
  // Of the devices that [device] prefer means; those that cannot be opened are left out.
  std::vector<std::shared_ptr<Device>> open_preferred();
};

}  // namespace kiln
