#include "runtime/learner.hpp"

#include "selector/sample_filter.hpp"

#include <new>
#include <utility>

namespace kiln {

Learner::Learner(const Config& config, Log log, DeviceTable& devices, ProgramCache& cache, DeviceSelector& selector,
                 Programs& programs, Autotuner& autotuner, JobMetrics& metrics)
    : devices_(devices),
      cache_(cache),
      selector_(selector),
      programs_(programs),
      autotuner_(autotuner),
      metrics_(metrics),
      file_(config.metrics, log) {}

Learner::~Learner() {
  try {
    file_.write([this] { return metrics_text(); });
  } catch (const std::bad_alloc&) {  // the file stays as it was
  }
}

void Learner::record(const Job& job, const Device& device, const Result<AcquiredPrograms>& programs,
                     const RunOutcome& outcome) {
  if (!programs) return;
  const DeviceInfo& info = device.info();
  for (const FinishedRun& run : outcome.runs) record_run(job, info, *programs, run);
  const bool ran_first = !outcome.runs.empty() && outcome.runs.front().measurement.first_run;
  if (ran_first && !outcome.statistics.empty() && !programs->generic)
    programs_.build_generic_ahead(job.request, info.id);
  if (!outcome.status.ok() || outcome.statistics.empty()) return;
  const auto rate = [&](const Measurement& measurement) {
    return measurement.wall_ns == 0 ? 0.0 : job.report.flops / static_cast<double>(measurement.wall_ns);
  };
  auto first = outcome.statistics.first();
  if (first) first->build_ns -= programs->build_ns;  // acquired before the wall time began: no part of it
  const auto steady = outcome.statistics.steady_median();
  if (first) {
    // They ran, but not within the measured time.
    Measurement ran;
    ran.first_run = true;
    for (const ProgramKey& key : programs->plan.keyed->prepare) cache_.record(key, device, ran, 0);
  }
  for (const ProgramKey& key : programs->plan.keyed->passes) {
    if (first) cache_.record(key, device, *first, rate(*first));
    if (steady) cache_.record(key, device, *steady, rate(*steady));
  }
}

void Learner::record_run(const Job& job, const DeviceInfo& device, const AcquiredPrograms& programs,
                         const FinishedRun& run) {
  const KernelSpec& spec = job.request.spec;
  const Measurement& measurement = run.measurement;
  const bool ok = run.conditions.status.ok();
  const bool counts = ok && !selector::is_above_roof(spec, device, measurement);
  if (programs.generic && ok) return;
  const bool usual = job.request.variant.empty();  // a variant that was asked for is not what usually runs
  if (usual) selector_.record(spec, device, measurement, run.conditions);  // the selector filters its samples
  if (!counts) return;
  programs.plan.generator->record(spec, device, programs.plan.keyed->plan->variant, measurement);
  // A simulated device's times say nothing of any other.
  BackgroundTuning* const tuning = autotuner_.background();
  if (tuning != nullptr && device.kind != DeviceKind::simulated && usual) {
    tuning->ran(device.id, spec, job.request.name, measurement.wall_ns);
  }
}

RunReport Learner::finish(Job& job) {
  job.under_way.reset();
  finish(job.report, job.span);
  return std::move(job.report);
}

void Learner::finish(const RunReport& report, TracedWork& span) {
  span.figure("op", report.op);
  span.figure("device", report.device.id);
  span.figure("tier", to_string(report.tier));
  span.figure("status", to_string(report.status.code));
  span.figure("runs", std::uint64_t{report.runs});
  span.end();
  metrics_.ended(report.device.id, report.op, to_string(report.status.code));
  file_.write_if_due([this] { return metrics_text(); });
}

std::string Learner::metrics_text() const { return runtime_metrics(metrics_, devices_.known(), cache_.stats()); }

}  // namespace kiln
