// Runtime: executes requests: selects a device, generates a plan, gets the programs from the cache, and runs them.
//
// Thread-safety: run() from any thread. Ownership: owns devices, cache, executor, selector and generators; the Registry
// must outlive it.
//
//   auto runtime = kiln::Runtime::create(config, registry, {});
//   if (!runtime) return runtime.error();
//   const kiln::RunReport report = (*runtime)->run(request);
//   if (!report.status.ok()) return report.status;
#pragma once

#include <kiln/config.hpp>
#include <kiln/device_selector.hpp>
#include <kiln/log.hpp>
#include <kiln/pipeline.hpp>
#include <kiln/program_cache.hpp>
#include <kiln/registry.hpp>
#include <kiln/run_request.hpp>
#include <kiln/tuning.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace [[gnu::visibility("default")]] kiln {

struct RecordedState;
struct RuntimeState;

// Requests, or a pipeline, with programs and device memory bound to one device, for Runtime::replay(). Tensors passed
// from one request to a later one remain on the device.
// Thread-safety: one replay at a time. Ownership: holds the device, the programs and the tensors; must be destroyed
// before its Runtime.
class RecordedRequests {
 public:
  RecordedRequests(const RecordedRequests&) = delete;
  RecordedRequests& operator=(const RecordedRequests&) = delete;
  ~RecordedRequests();

  const DeviceInfo& device() const noexcept;
  std::size_t jobs() const noexcept;  // requests, or runs of the pipeline's steps
  const std::string& selected_because() const noexcept;

 private:
  friend class Runtime;
  explicit RecordedRequests(std::unique_ptr<RecordedState> state);
  std::unique_ptr<RecordedState> state_;
};

class Runtime {
 public:
  // Opens no device; a device is opened when first selected. not_found: a configured name is not registered; the error
  // lists the registered ones.
  //
  // [cache] warm starts a thread that opens [device] prefer and preloads programs; it waits for jobs and memory.
  // [generator] background starts a thread that tunes shapes in kiln-probe while no job runs; it needs a writable cache
  // folder. trace: receives the stages of every job and the decisions; it must outlive the Runtime. Null: no trace.
  static Result<std::unique_ptr<Runtime>> create(const Config& config, const Registry& registry, Log log,
                                                 TraceSink* trace = nullptr);

  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;
  ~Runtime();
  // For a process that calls _exit() right after destroying the Runtime. The destructor then writes its files and stops
  // its threads, but does not close the devices. If this process built a program, it still closes them, because the
  // driver may be writing its own cache.
  void leave_devices() noexcept;

  // Always returns a report; its status has the error. unavailable: no device could run the request. not_found: no
  // device has the id in the request or in [device] prefer (check_device()).
  RunReport run(const RunRequest& request);

  // Selects a device and gets the programs as run() does, and compares their declarations with the request. Runs
  // nothing. The report has device, variant and tier, or the error that run() would return.
  RunReport check(const RunRequest& request);

  // Runs a pipeline (kiln/pipeline.hpp) on one device: the one in the request, or the one selected for the pipeline.
  // The report has the times of the whole pipeline; `steps` has one element for each step. invalid_argument: validate()
  // rejects it. unsupported: the executor cannot record.
  RunReport run(const PipelineRequest& request);

  // Prepares requests as one job that replay() can run many times. They run in order, on one device: `device`, or the
  // one selected for the request with the most FLOPs. Each request's `variant` and `verify` apply; verification runs
  // after each replay. invalid_argument: a request has repeat, device, timeout or stop set, or verifies a tensor that
  // an earlier request reads or a later one writes. unsupported: the executor cannot record.
  Result<std::unique_ptr<RecordedRequests>> record(std::vector<RunRequest> requests, std::string_view device = {});
  // The same for a pipeline, which run() records anew for each call. `check` and `measure_steps` apply to each replay.
  // invalid_argument: the request has repeat, progress, timeout or stop set, or run() would reject it.
  Result<std::unique_ptr<RecordedRequests>> record(PipelineRequest request);
  // Runs what was recorded with the current contents of its tensors. The report has totals of all requests. The first
  // replay includes one-time work of the device. Replays of requests are not learned. After an error the
  // inout tensors of a pipeline hold what they held before, its other results anything; after wrong_result they hold
  // that. After timeout and cancelled the device may
  // still write them: the next replay is invalid_argument until it has finished. device_lost: call record() again.
  RunReport replay(RecordedRequests& recorded, const ReplayTerms& terms = {});

  // Returns the selector's current figures for a request. Opens the devices, but runs and records nothing. Ignores the
  // tensors of the request.
  Result<Explanation> explain(const RunRequest& request);
  Result<Explanation> explain(const PipelineRequest& request);

  // Opens all usable devices of all drivers and returns the complete list.
  std::vector<DeviceInfo> devices();
  // not_found: no driver lists the id; the error has all devices, why some are not usable, and the closest id. Loads
  // only the driver named by the id; an unknown id loads all. "auto" and "" are not device ids.
  Status check_device(std::string_view id);
  // Returns the devices enumerated so far, without loading anything.
  std::vector<DeviceInfo> known_devices() const;
  // Opens a device, or for "auto" every usable one, before its first job. The report of the job has the error, if any.
  void open_ahead(std::string_view device);
  // Loads programs from disk into memory and dispatches each once with an empty grid. Missing programs are built on
  // several threads; concurrent warming processes share the builds. If [cache] max_programs or max_memory is too small,
  // the first programs may be evicted again.
  Result<WarmReport> warm(const WarmRequest& request);
  // The same on a device of the caller, such as one of an AheadCompiler, for the jobs of the request. Its programs stay
  // in this runtime's memory: the device must outlive the Runtime.
  Result<WarmReport> warm(const WarmRequest& request, Device& device);
  WarmingState warming() const;
  BackgroundTuningState background_tuning() const;
  // Measures the variants of a spec on the bench, in another process, and stores the winner. The programs of the winner
  // are stored before it is used.
  Result<TuneOutcome> tune(const KernelSpec& spec, std::string_view device, VariantBench& bench,
                           const TuneOptions& options);
  // Returns the specs with a stored winner for the device.
  Result<std::vector<KernelSpec>> tuned(std::string_view device);
  // Stored measurements of the generators; nullptr: none. Valid for the lifetime of the Runtime.
  TuningStore* tuning() noexcept;
  CacheStats cache_stats() const;
  // Returns metrics of jobs, devices and cache in Prometheus text format, as in the file of [metrics].
  std::string metrics() const;
  const WorkCounters& counters() const noexcept;
  Result<std::uint64_t> persist();

 private:
  explicit Runtime(std::unique_ptr<RuntimeState> state);
  std::unique_ptr<RuntimeState> state_;
};

// Registers the components of "core": the cache `tiered`, the executor `ring`, the selectors `fixed` and `learning`.
// Call it before plugins register, so that a conflict is reported for the plugin.
Status register_core(Registry& registry);

// Returns environment variables (name, value) that place the drivers' caches in Kiln's folder. Set them before any
// thread or plugin exists; the library never calls setenv. Prepare the folder of MESA_SHADER_CACHE_DIR first
// (kiln/driver_cache.hpp).
std::vector<std::pair<std::string, std::string>> driver_environment(const Config& config);

}  // namespace kiln
