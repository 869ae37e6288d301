// Runtime: the one orchestrator. It alone knows all the parts: spec → selector → generator → keys → cache → executor.
//
// Thread-safety: run() from any thread. Ownership: the Runtime owns the devices, the cache, the executor, the selector
// and the generators; the Registry that it is given outlives it.
#pragma once

#include <kiln/config.hpp>
#include <kiln/device_selector.hpp>
#include <kiln/log.hpp>
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

namespace kiln {

struct RecordedState;
struct RuntimeState;

// Requests whose programs were made and whose memory was bound on one device once, for Runtime::replay(). What one of
// them writes and a later one reads stays on the device in between. Thread-safety: one replay at a time. Ownership:
// keeps the device, the programs and the tensors; dies before its Runtime.
class RecordedRequests {
 public:
  RecordedRequests(const RecordedRequests&) = delete;
  RecordedRequests& operator=(const RecordedRequests&) = delete;
  ~RecordedRequests();

  const DeviceInfo& device() const noexcept;
  std::size_t jobs() const noexcept;
  const std::string& selected_because() const noexcept;

 private:
  friend class Runtime;
  explicit RecordedRequests(std::unique_ptr<RecordedState> state);
  std::unique_ptr<RecordedState> state_;
};

class Runtime {
 public:
  // Opens nothing heavy: a device is opened when it is first chosen. not_found: a name chosen in the configuration is
  // not registered, with what is.
  // Where [cache] warm asks for it a thread of the runtime's own begins to open [device] prefer and to warm; it waits
  // for jobs and for memory, and ends with the runtime. Where [generator] background asks for it another one tunes what
  // ran, in kiln-probe, while no job runs; it needs a cache folder that is written. trace: told every stage of every
  // job, what was done for it and what was decided; it outlives the Runtime. Null: nobody is.
  static Result<std::unique_ptr<Runtime>> create(const Config& config, const Registry& registry, Log log,
                                                 TraceSink* trace = nullptr);

  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;
  ~Runtime();

  // Always answers a report; what failed is in its status. unavailable: no device could serve. not_found: there is no
  // device of the id that the request or [device] prefer names (check_device()).
  RunReport run(const RunRequest& request);

  // Chooses a device and makes the programs, as run() does, and compares what they declare with the request; runs
  // nothing. The report holds the device, the variant and the tier, or why run() would fail.
  RunReport check(const RunRequest& request);

  // Prepares requests to be run again and again, in their order, as one job. One device serves them all: the one that
  // is named, else the one that would be chosen for the request with most FLOPs. Each request's `variant` counts, and
  // its `verify`: such a request is compared after each replay, with what its tensors hold then. invalid_argument names
  // the request that is amiss: one that asks for repeats, a device, a timeout or a stop of its own, or for a comparison
  // of what an earlier one reads or a later one writes. unsupported: the executor does not record.
  Result<std::unique_ptr<RecordedRequests>> record(std::vector<RunRequest> requests, std::string_view device = {});
  // Runs them with what their tensors hold now. The report is that of one run: figures of all requests together. What
  // the device did once for each, the first replay does. Neither the selector nor the generator learns from it: it is
  // no single request's time. device_lost: record anew.
  RunReport replay(RecordedRequests& recorded, const ReplayTerms& terms = {});

  // The selector's numbers for a request, as they would decide now. Opens the devices, runs and counts nothing. The
  // request's tensors are not looked at.
  Result<Explanation> explain(const RunRequest& request);

  // Every device of every driver: asks drivers that were not asked before, which loads their libraries.
  std::vector<DeviceInfo> devices();
  // not_found: no driver lists a device of that id, with all devices, why some are not usable, and the nearest id. The
  // driver that the id names is loaded; an unknown id loads them all. "auto" and no id at all are no names.
  Status check_device(std::string_view id);
  // The devices met so far, without loading anything.
  std::vector<DeviceInfo> known_devices() const;
  // Opens a device ahead of its first job, or every usable one for "auto"; what fails is kept for the report of the
  // job.
  void open_ahead(std::string_view device);
  // Takes programs that lie on disk into memory and dispatches each once, over nothing. Where [cache] max_programs or
  // max_memory does not hold them all, those that came first may leave again. What has to be built is built on several
  // threads, and shared among the processes that warm at one time.
  Result<WarmReport> warm(const WarmRequest& request);
  WarmingState warming() const;
  BackgroundTuningState background_tuning() const;
  // Lets the device's generator measure its variants of a spec on the bench, which runs them apart from this process,
  // and keep the winner, whose programs are stored before it serves.
  Result<TuneOutcome> tune(const KernelSpec& spec, std::string_view device, VariantBench& bench,
                           const TuneOptions& options);
  // Likewise the specs for which the device's generator keeps a winner.
  Result<std::vector<KernelSpec>> tuned(std::string_view device);
  // What the generators keep of measurements; nullptr: none of them keeps any. Lives as long as the runtime.
  TuningStore* tuning() noexcept;
  CacheStats cache_stats() const;
  // What its jobs did since it began, its devices and its cache, in Prometheus' text format; what [metrics] file holds.
  std::string metrics() const;
  const WorkCounters& counters() const noexcept;
  Result<std::uint64_t> persist();

 private:
  explicit Runtime(std::unique_ptr<RuntimeState> state);
  std::unique_ptr<RuntimeState> state_;
};

// What core brings under the plugin name "core": the cache `tiered`, the executor `ring`, the selectors `fixed` and
// `learning`. Called before plugins register, so that a clash names the plugin as the second.
Status register_core(Registry& registry);

// Asks the C library for heaps that are large at once: address space, not memory. Drivers allocate on threads of their
// own, whose heaps otherwise grow page by page, which was most of the time that loading a program binary took. Each
// thread keeps a heap of its own, since a software driver's threads allocate for every workgroup and would wait for
// each other at a shared one. For the main() of a program whose process is Kiln's, before there are threads; libraries
// never call it.
void prefer_roomy_heaps() noexcept;

// Environment variables that make the drivers keep their own caches inside Kiln's folder and follow the configuration:
// name and value. A host sets them before any thread or plugin exists; libraries never call setenv. The folder that
// MESA_SHADER_CACHE_DIR names is to be made ready before (kiln/driver_cache.hpp).
std::vector<std::pair<std::string, std::string>> driver_environment(const Config& config);

}  // namespace kiln
