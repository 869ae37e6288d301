// Runtime: executes requests. It selects a device, generates a plan, gets the programs from the cache, and runs them.
//
// Thread-safety: run() from any thread. Ownership: the Runtime owns devices, cache, executor, selector and generators. The
// Registry must outlive the Runtime.
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

// Requests or a pipeline with programs and device memory on one device, for Runtime::replay(). Tensors from one request to a
// later one remain on the device.
// Thread-safety: one replay at a time. Ownership: shares the device, the programs and the tensors. Destroy it before its
// Runtime.
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
  // Opens no device. The Runtime opens a device when it is first selected. not_found: a configured name is not registered;
  // the error lists the registered names.
  //
  // [cache] warm starts a thread that opens [device] prefer and preloads programs. The thread pauses while jobs run and under
  // memory pressure. [generator] background starts a thread that tunes shapes in kiln-probe while no job runs; it needs a
  // writable cache folder. trace: receives the stages of every job and the decisions. It must outlive the Runtime. Null: no
  // trace.
  static Result<std::unique_ptr<Runtime>> create(const Config& config, const Registry& registry, Log log,
                                                 TraceSink* trace = nullptr);

  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;
  ~Runtime();
  // Call this if the process calls _exit() right after destroying the Runtime. The destructor then writes its files and stops
  // its threads, but does not close the devices. If this process built a program, the destructor still closes the devices,
  // because the driver may be writing its own cache.
  void leave_devices() noexcept;

  // Runs a request. Always returns a report; the report's status has the error. unavailable: no device could run the
  // request. not_found: no device has the id in the request or in [device] prefer (check_device()).
  RunReport run(const RunRequest& request);

  // Selects a device and gets the programs like run(), and compares their declarations with the request. Runs nothing. The
  // report has device, variant and tier, or the error that run() would return.
  RunReport check(const RunRequest& request);

  // Runs a pipeline (kiln/pipeline.hpp) on the device in the request, or on the device that is selected for the pipeline.
  // The report has the times of the whole pipeline; `steps` has one element for each step. invalid_argument: validate()
  // rejects the pipeline. unsupported: the executor cannot record.
  RunReport run(const PipelineRequest& request);

  // Prepares requests as one job that replay() can run many times. The requests run in order on one device. An empty
  // `device` selects the device for the request with the most FLOPs. Each request's `variant` and `verify` apply;
  // verification runs after each replay. invalid_argument: a request has repeat, device, timeout or stop set, or it
  // verifies a tensor that an earlier request reads or a later request writes. unsupported: the executor cannot record.
  Result<std::unique_ptr<RecordedRequests>> record(std::vector<RunRequest> requests, std::string_view device = {});
  // Prepares a pipeline for replay(). Each call of run() would record the pipeline again. `check` and `measure_steps` apply
  // to each replay. invalid_argument: the request has repeat, progress, timeout or stop set, or run() would reject it.
  Result<std::unique_ptr<RecordedRequests>> record(PipelineRequest request);
  // Runs the recording with the current contents of its tensors. The report has totals of all requests. The first replay
  // includes one-time work of the device. The selector does not learn from replays of requests. After an error, the inout
  // tensors of a pipeline have their earlier contents, and its other results are undefined. After wrong_result, all of them
  // have the wrong results. After timeout and cancelled, the device may still write the tensors: the next replay is
  // invalid_argument until the device has finished. device_lost: call record() again.
  RunReport replay(RecordedRequests& recorded, const ReplayTerms& terms = {});

  // Returns the selector's current estimates for a request. Opens the devices, but runs and records nothing. Ignores the
  // tensors of the request.
  Result<Explanation> explain(const RunRequest& request);
  Result<Explanation> explain(const PipelineRequest& request);

  // Opens all usable devices of all drivers and returns the complete list.
  std::vector<DeviceInfo> devices();
  // Checks a device id. Loads only the driver in the id; an unknown id loads all drivers. "auto" and "" are not device ids.
  // not_found: no driver lists the id; the error has all devices, why some are not usable, and the closest id.
  Status check_device(std::string_view id);
  // Returns the devices enumerated so far, without loading anything.
  std::vector<DeviceInfo> known_devices() const;
  // Opens a device before its first job; "auto" opens every usable device. If it fails, the report of the job has the error.
  void open_ahead(std::string_view device);
  // Loads programs from disk into memory and dispatches each once with an empty grid. Builds missing programs on several
  // threads; concurrent warming processes share the builds. If [cache] max_programs or max_memory is too small, the cache
  // may evict the first programs again.
  Result<WarmReport> warm(const WarmRequest& request);
  // Warms the jobs of the request on a device of the caller, such as a device of an AheadCompiler. The programs stay in the
  // memory of this Runtime, so the device must outlive the Runtime.
  Result<WarmReport> warm(const WarmRequest& request, Device& device);
  WarmingState warming() const;
  BackgroundTuningState background_tuning() const;
  // Measures the variants of a spec on the bench, in another process, and stores the winner. Stores the programs of the
  // winner before jobs use it.
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
  // Stores what is held in memory only: programs where [cache] auto_save is false, values of entries, and what the
  // selector has learned. Returns the number of programs that it stored.
  Result<std::uint64_t> persist();

 private:
  explicit Runtime(std::unique_ptr<RuntimeState> state);
  std::unique_ptr<RuntimeState> state_;
};

// Registers the components of "core": the cache `tiered`, the executor `ring`, the selectors `fixed` and `learning`.
// Call it before plugins register, so that a conflict is reported for the plugin.
Status register_core(Registry& registry);

// Returns environment variables (name, value) that place the drivers' caches in Kiln's folder. The library never calls
// setenv. Set the variables before any thread or plugin exists. First prepare the folder of MESA_SHADER_CACHE_DIR
// (kiln/driver_cache.hpp).
std::vector<std::pair<std::string, std::string>> driver_environment(const Config& config);

}  // namespace kiln
