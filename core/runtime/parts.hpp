// Runtime::Parts: what a Runtime is made of, and the steps of a request over it: choosing.cpp, preparing.cpp,
// standing_in.cpp, runtime.cpp.
//
// Thread-safety: every method from any thread. Ownership: owns everything but the registry.
#pragma once

#include "cache/driver_cache/driver_scratch.hpp"
#include "runtime/building/build_processes.hpp"
#include "runtime/devices/device_table.hpp"
#include "runtime/devices/resource_use.hpp"
#include "runtime/job/plan_memo.hpp"
#include "runtime/metrics/runtime_metrics.hpp"
#include "runtime/tuning/background_tuning.hpp"
#include "runtime/warming/background_builder.hpp"
#include "runtime/warming/background_warming.hpp"

#include <kiln/runtime.hpp>

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace kiln {

struct PlannedPrograms {
  std::vector<ProgramHandle> passes;
  std::vector<ProgramHandle> prepare;
  std::vector<std::vector<ResourceSource>> sources;  // of the passes of a user's kernel; empty: bindings go by position
  Tier tier = Tier::memory;
  std::uint64_t build_ns = 0;
};

struct OneGenerator {
  std::string plugin;
  std::vector<Dialect> dialects;
  std::unique_ptr<KernelGenerator> generator;
};

struct Chosen {
  std::string device;
  std::uint64_t traced_ns = 0;  // within the span that a trace shows of the choosing; 0: there is no trace
};

struct Service {  // what serves one request on one device
  std::shared_ptr<Device> device;
  KernelGenerator* generator = nullptr;
  std::shared_ptr<const KeyedPlan> keyed;
  PlannedPrograms programs;
  std::uint64_t chosen_ns = 0;  // Chosen::traced_ns
  bool stands_in = false;       // with programs for any shape, while the spec's own are built
};

// Each program that is not in `seen` yet, in the order of the plan.
void add_programs(const KeyedPlan& keyed, std::set<Digest>& seen, std::vector<KeptProgram>& programs);
// Of a spec on a device, as the sets of Runtime::Parts name it.
std::string work_name(const RunRequest& request, const std::string& device);

struct JobEnd {
  Status status;
  bool had_its_turn = true;  // false: its device did not get to run, and nothing is the device's doing
};

struct Runtime::Parts {
  // In order of construction; destroyed from the last to the first.
  Config config;
  Log log;
  TraceSink* trace;  // null: nobody is told
  // Its driver writes there as long as a device is open. null: the driver keeps its cache elsewhere, or none.
  std::unique_ptr<DriverScratch> driver_folder = DriverScratch::of_process();
  WorkCounters counters;
  DeviceTable devices;
  std::unique_ptr<BuildProcesses> builds;  // null: there is no kiln-probe
  std::unique_ptr<ProgramCache> cache;
  std::unique_ptr<Executor> executor;
  std::unique_ptr<DeviceSelector> selector;
  std::vector<OneGenerator> generators;  // the configured one first
  bool prefers_first_generator = true;   // false: the one of [generator] name's default is not loaded
  PlanMemo memo;
  ResourceUse resources;
  JobMetrics metrics;
  MetricsFile metrics_file;
  mutable std::mutex warm_mutex;
  std::set<std::string> ran;    // "device|spec" that ran in this process
  std::set<std::string> ready;  // whose programs are in memory and were dispatched, over nothing or by a run
  std::set<std::string> built_in_vain;
  // work_name() and the generator's revision, to the variant that serves a kernel whose preferred one cannot be built.
  std::map<std::string, std::string> serving_variants;
  // Last: what they do needs the rest.
  BackgroundBuilder builder;
  std::unique_ptr<BackgroundWarming> warming;  // null: nothing is asked for
  std::unique_ptr<BackgroundTuning> tuning;    // likewise

  // A scope in which a job runs: what is done in the background goes behind.
  class JobScope {
   public:
    explicit JobScope(Parts& parts) : warming_(parts.warming.get()), tuning_(parts.tuning.get()) {}

   private:
    const BackgroundWarming::Job warming_;
    const BackgroundTuning::Job tuning_;
  };

  Parts(const Config& chosen, const Registry& registry, Log to, TraceSink* told)
      : config(chosen),
        log(to),
        trace(told),
        devices(config, registry, log, counters),
        metrics_file(config.metrics, log) {}

  // The configured one where it writes what the device reads, else that of the plugin which brought the device, else
  // any; by the device's dialects, best first. Of a user's kernel only its own dialect counts. nullptr: none writes any
  // of them.
  std::pair<KernelGenerator*, Dialect> generator_for(const DeviceInfo& device, const KernelSpec* spec = nullptr) const;
  // unsupported: the device reads no dialect in which the spec can be written. Such a device is no candidate.
  Status check_reads(const DeviceInfo& device, const KernelSpec& spec) const;
  Result<std::vector<DeviceInfo>> candidates(const RunRequest& request, const std::set<std::string>& refused,
                                             RunReport& report);
  Result<Chosen> choose(const RunRequest& request, const std::set<std::string>& refused, RunReport& report);
  Result<std::string> device_for(const RunRequest& request, const std::set<std::string>& refused, RunReport& report);
  Result<Explanation> explain(const RunRequest& request);
  std::vector<Candidate> offer(const RunRequest& request, const std::vector<DeviceInfo>& able);
  Status nothing_offered(const RunRequest& request, const std::set<std::string>& refused, const RunReport& report);
  // Where no device is offered: one that is set aside and could serve. Its pause ends.
  std::optional<std::string> last_resort(const RunRequest& request, const std::set<std::string>& refused);
  std::uint64_t wait_ns(const DeviceInfo& device, const std::vector<DeviceInfo>& all);
  JobTerms terms_of(const RunRequest& request, const std::vector<Candidate>& offered) const;
  void build_ahead(const RunRequest& request, const std::string& device);
  Result<std::shared_ptr<const KeyedPlan>> plan(const RunRequest& request, const Device& device,
                                                KernelGenerator& generator, Dialect dialect);
  Result<std::shared_ptr<const KeyedPlan>> keyed_plan(const RunRequest& request, const Device& device,
                                                      KernelGenerator& generator, Dialect dialect);
  Result<std::shared_ptr<const KeyedPlan>> with_keys(const RunRequest& request, const Device& device, KernelPlan plan);
  // What may serve in place of `own`, whose programs are not kept and are asked for in the background then: nullptr
  // where [generator] serve_while_building does not ask for it, where own's are kept, or where nothing else is.
  std::shared_ptr<const KeyedPlan> stand_in_for(const RunRequest& request, const Device& device, const KeyedPlan& own,
                                                KernelGenerator& generator, Dialect dialect);
  // Behind a spec's first run: what may serve the next shape that is new, where it is asked for and not kept.
  void build_stand_ins(const RunRequest& request, const std::string& device);
  std::vector<std::shared_ptr<const KeyedPlan>> stand_ins(const RunRequest& request, const Device& device,
                                                          KernelGenerator& generator, Dialect dialect);
  bool holds(const KeyedPlan& keyed, const Device& device);
  std::vector<std::shared_ptr<Device>> devices_to_warm();
  // What [generator] background asks for; a reason why it cannot be done.
  Result<std::unique_ptr<BackgroundTuning>> tune_in_background();
  Result<TuneOutcome> tune(const KernelSpec& spec, const std::string& device, VariantBench& bench,
                           const TuneOptions& options);
  // The programs of the winners that the device's generator keeps.
  TunedPrograms tuned_programs(const Device& device);
  // Links and dispatches the programs of one variant, which stores them.
  Status publish(const RunRequest& variant, Device& device, unsigned threads);
  Result<std::vector<KeptProgram>> programs_of(const std::vector<WarmJob>& jobs, const Device& device);
  Result<PlannedPrograms> acquire(const KeyedPlan& keyed, Device& device);
  // What of the request provides each resource of its programs.
  Status match(const KernelSpec& spec, const KernelPlan& plan, PlannedPrograms& programs);
  Result<Service> prepare(const RunRequest& request, const std::shared_ptr<Device>& device, RunReport& report);
  // The generator's variant of a kernel that leaves parameters open; where it cannot be built, the first that can.
  Result<Service> prepare_any_variant(const RunRequest& request, const UserKernelSpec& kernel,
                                      const std::shared_ptr<Device>& device, KernelGenerator& generator,
                                      Dialect dialect, RunReport& report);
  Result<Service> prepare_variant(const RunRequest& request, const std::shared_ptr<Device>& device,
                                  KernelGenerator& generator, Dialect dialect, RunReport& report);
  // A job that ended, as the metrics tell it.
  void count(const RunReport& report);
  std::string metrics_text() const;
  // Under fallback = "never": whether the device was the selector's choice, and can never do what is asked. Then
  // another one is no fallback.
  bool may_be_left(const RunRequest& request, const Status& status) const;
  // Chooses, prepares and runs, on another device where one cannot serve.
  enum class Until : std::uint8_t { invalid = 0, programs, end };
  void serve(const RunRequest& request, Until until, RunReport& report);
  // follows_ns: Chosen::traced_ns of the choice that this run is the first to follow; 0: of none.
  Result<Measurement> run_once(const RunRequest& request, const Service& service, bool poisoned, Deadline deadline,
                               std::uint64_t follows_ns);
  // Until the deadline, or until `stop` says so; then it is cancelled. null: nobody says so.
  Result<Measurement> await(Fence fence, const std::atomic<bool>* stop, Deadline deadline);
  JobEnd run_all(const RunRequest& request, const Service& service, RunReport& report);
  Status compare(const RunRequest& request, RunReport& report);
  // Makes the programs of all requests on the device.
  Result<std::vector<Submission>> submissions_of(RecordedRequests::Parts& recorded, const std::string& device);
  Status compare_all(const std::vector<RunRequest>& requests, RunReport& report);
  Status replay(RecordedRequests::Parts& recorded, const ReplayTerms& terms, RunReport& report);
  void learn(const RunRequest& request, const Service& service, const Measurement& measurement,
             const RunConditions& conditions);
  // Whether it ran before in this process; it has now.
  bool begins_to_run(const RunRequest& request, const std::string& device);
  bool is_ready(const RunRequest& request, const std::string& device) const;
};

}  // namespace kiln
