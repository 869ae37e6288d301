// RuntimeState: the components of a Runtime, in the order of construction.
//
// Thread-safety: as each component. Ownership: owns everything except the registry and the trace.
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

#include <kiln/runtime.hpp>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace kiln {

// The components that the steps of a request use.
struct RuntimeParts {
  RuntimeParts(const Config& chosen, const Registry& registry, Log to, TraceSink* sink)
      : config(chosen), log(to), trace(sink), devices(config, registry, log, counters) {}
  ~RuntimeParts();
  // As destroying it, but leaves the devices: it is not freed, since their threads use it until the process ends.
  void end_without_devices() noexcept;

  // A thread that is joined when everything below is destroyed.
  struct Last {
    std::thread thread;
    ~Last() {
      if (thread.joinable()) thread.join();
    }
  };

  const Config config;
  const Log log;
  TraceSink* const trace;  // null: no trace
  Last selector_end;
  // The driver writes here while a device is open. null: no driver cache, or not in such a folder.
  std::shared_ptr<DriverScratch> driver_folder = DriverScratch::of_process();
  WorkCounters counters;
  DeviceTable devices;
  std::unique_ptr<BuildProcesses> builds;  // null: kiln-probe is not installed
  std::unique_ptr<ProgramCache> cache;
  std::unique_ptr<Executor> executor;
  std::unique_ptr<DeviceSelector> selector;
  std::vector<LoadedGenerator> generators;  // moved to the planner
  bool prefers_first_generator = true;
  std::atomic<bool> leaves_devices{false};  // Runtime::leave_devices()
  ResourceUse resources;
  WorkHistory history;
  JobMetrics metrics;

 private:
  void end_selector();
};

struct EndOfParts {
  void operator()(RuntimeParts* parts) const noexcept;
};

struct RuntimeState {
  explicit RuntimeState(std::unique_ptr<RuntimeParts> made);

  const std::unique_ptr<RuntimeParts, EndOfParts> parts;
  Planner planner;
  Programs programs;
  Router router;
  Runner runner;
  Learner learner;
  std::unique_ptr<BackgroundWarming> warming;  // null: not configured
  Autotuner autotuner;

  // Marks a running job for its lifetime: background work waits.
  class JobScope {
   public:
    explicit JobScope(RuntimeState& state) : warming_(state.warming.get()), tuning_(state.autotuner.background()) {}

   private:
    const BackgroundWarming::Job warming_;
    const BackgroundTuning::Job tuning_;
  };

  RunReport run(const RunRequest& request);
  // As run(), without running the job.
  RunReport check(const RunRequest& request);
  // Opens the devices that [device] prefer selects. Skips devices that cannot be opened.
  std::vector<std::shared_ptr<Device>> open_preferred();
};

}  // namespace kiln
