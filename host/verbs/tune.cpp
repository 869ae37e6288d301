// `kiln tune`: measures the variants of each job's kernel in a child process; the winners persist.
#include "interrupt.hpp"
#include "progress/progress_bar.hpp"
#include "report/text_table.hpp"
#include "session.hpp"
#include "verbs/finish.hpp"
#include "verbs/verbs.hpp"

#include <kiln/bench.hpp>
#include <kiln/data.hpp>
#include <kiln/digest.hpp>

#include <cstdio>

namespace kiln::host {
namespace {

struct TunedJob {
  std::string name, device;
  Status status;
  double flops = 0;
  TuneOutcome outcome;
};

double rate(double flops, std::uint64_t ns) { return ns == 0 ? 0.0 : flops / static_cast<double>(ns); }

double ms(std::uint64_t ns) { return static_cast<double>(ns) / 1e6; }

// Rates where the operations are known, else times.
std::string figures(const TunedJob& job) {
  const TuneOutcome& o = job.outcome;
  char text[160];
  if (job.flops > 0) {
    std::snprintf(text, sizeof text, "%.1f GFLOP/s NCHW to NCHW, %.1f on the device (plain: %.1f)",
                  rate(job.flops, o.wall_ns), rate(job.flops, o.device_ns), rate(job.flops, o.baseline_device_ns));
  } else {
    std::snprintf(text, sizeof text, "%.3f ms, %.3f on the device (first variant: %.3f)", ms(o.wall_ns),
                  ms(o.device_ns), ms(o.baseline_device_ns));
  }
  return text;
}

Json json_of(const std::vector<TunedJob>& jobs) {
  Json list = Json::array();
  for (const TunedJob& job : jobs) {
    const TuneOutcome& outcome = job.outcome;
    const bool ok = job.status.ok();
    const auto rate_or_null = [&](std::uint64_t ns) {
      return job.flops > 0 ? Json(rate(job.flops, ns)) : Json(nullptr);
    };
    list.push_back(
        {{"name", job.name},
         {"device", job.device},
         {"error", ok ? Json(nullptr) : Json(job.status.message)},
         {"variant", ok ? Json(outcome.variant) : Json(nullptr)},
         {"ms", ok ? Json(ms(outcome.wall_ns)) : Json(nullptr)},
         {"baseline_ms", ok ? Json(ms(outcome.baseline_wall_ns)) : Json(nullptr)},
         {"gflops", rate_or_null(outcome.wall_ns)},
         {"gflops_device", rate_or_null(outcome.device_ns)},
         {"baseline_gflops_device", rate_or_null(outcome.baseline_device_ns)},
         {"baseline_gflops", rate_or_null(outcome.baseline_wall_ns)},
         {"decision", ok ? Json(to_string(outcome.decision)) : Json(nullptr)},
         {"note", outcome.note.empty() ? Json(nullptr) : Json(outcome.note)},
         {"incumbent", outcome.incumbent.empty() ? Json(nullptr) : Json(outcome.incumbent)},
         {"incumbent_ms", outcome.incumbent_wall_ns == 0 ? Json(nullptr) : Json(ms(outcome.incumbent_wall_ns))},
         {"contention", ok ? Json(outcome.contention) : Json(nullptr)},
         {"space", outcome.space},
         {"candidates", outcome.candidates},
         {"known", outcome.known},
         {"rejected", outcome.rejected}});
  }
  return {{"schema", 1}, {"jobs", list}};
}

std::string text_of(const std::vector<TunedJob>& jobs) {
  std::string text;
  for (const TunedJob& job : jobs) {
    if (!job.status.ok()) {
      text += visible(job.name + " on " + job.device + ": " + job.status.message) + "\n";
      continue;
    }
    const TuneOutcome& o = job.outcome;
    char line[320];
    std::snprintf(line, sizeof line, "; %zu of %zu variants measured, %zu known, %zu rejected\n  ", o.candidates,
                  o.space, o.known, o.rejected.size());
    text += visible(job.name) + " on " + job.device + ": " + figures(job) + line + visible(o.variant) + "\n";
    if (!o.note.empty()) text += "  note: " + visible(o.note) + "\n";
    for (const std::string& rejected : o.rejected) text += "  rejected " + visible(rejected) + "\n";
  }
  return text.empty() ? "no device has several variants\n" : text;
}

// What judges the variants of a user's kernel: for each result its expected values and tolerance, or agreement.
void add_basis(const RunRequest& request, TuneOptions& how) {
  KeyEncoder encoder;
  const auto add_tolerance = [&](std::string_view name, const std::optional<Tolerance>& tolerance) {
    char text[64];
    if (!tolerance) return;
    std::snprintf(text, sizeof text, "%.17g %.17g", tolerance->absolute, tolerance->relative);
    encoder.field(name, text);
  };
  add_tolerance("tolerance", request.tolerance);
  how.by_agreement = request.expected.empty();
  for (const ExpectedOutput& expected : request.expected) {
    how.by_agreement = how.by_agreement || expected.tensor == nullptr;
    encoder.field("expected", expected.tensor == nullptr ? "agreement" : sha256(expected.tensor->bytes()).hex());
    add_tolerance("of it", expected.tolerance);
  }
  how.basis = encoder.digest().hex().substr(0, 16);
}

TunedJob tune_job(const RunRequest& request, const std::string& device, Session& session, const Options& options,
                  ProgressLine& progress) {
  TunedJob tuned{request.name, device, {}, flops(request.spec), {}};
  const auto* conv = std::get_if<Conv2dSpec>(&request.spec);
  const auto* gemm = std::get_if<GemmSpec>(&request.spec);
  const auto* kernel = std::get_if<UserKernelSpec>(&request.spec);
  if (kernel != nullptr && kernel->parameters.empty()) {
    tuned.status = unsupported("kernel: nothing to tune (expected the key `tune` in the job)");
    return tuned;
  }
  ConfigSources sources = options.sources;
  if (sources.file) sources.file = std::filesystem::absolute(*sources.file);
  BenchSetup setup{sources, device, request.name};
  if (conv != nullptr) setup.subject = *conv;
  if (gemm != nullptr) setup.subject = *gemm;
  const auto bench = open_bench(PluginLoader::default_probe(), std::move(setup), &interrupted());
  TuneOptions how;
  how.name = request.name;
  how.stop = &interrupted();
  how.exhaustive = options.tune.exhaustive;
  how.again = options.tune.again;
  if (kernel != nullptr) add_basis(request, how);
  if (options.tune.budget) how.budget = *options.tune.budget;
  how.progress = [&](const TuneProgress& at) { progress.show(tuning_progress_text(request.name, at)); };
  auto outcome = session.runtime().tune(request.spec, device, *bench, how);
  if (!outcome) {
    tuned.status = std::move(outcome).error();
    return tuned;
  }
  tuned.outcome = std::move(*outcome);
  return tuned;
}

}  // namespace

int tune(const Options& options) {
  Session session(options);
  if (const auto end = session.open_runtime(MissingPlugins::end, JobFiles::check)) return *end;
  if (const auto end = session.check_devices()) return *end;
  install_interrupt_handlers();
  const std::string asked = options.device.empty() ? session.config().device.prefer : options.device;
  std::vector<TunedJob> tuned;
  bool well = true;
  {
    ProgressLine progress(options.progress);
    for (const DeviceInfo& device : session.devices_named(asked)) {
      if (!device.usable && asked != "auto") {
        complain(visible("device " + asked + ": " + device.why_not));
        return exit_no_device;
      }
      if (asked == "auto" && (!device.usable || device.dialects == std::vector{Dialect::library})) continue;
      for (const JobConfig& job : session.config().jobs) {
        if (interrupted()) break;
        auto request = data::make_request(job);
        if (!request) {
          complain(visible("job '" + job.name + "': " + request.error().message));
          well = false;
          continue;
        }
        tuned.push_back(tune_job(*request, device.id, session, options, progress));
        // A job that has nothing to choose from is told, and no failure.
        const Status& status = tuned.back().status;
        well = well && (status.ok() || status.code == StatusCode::unsupported);
      }
    }
  }
  if (interrupted()) end_by_signal();  // every record is whole; the next run goes on from here
  (void)session.runtime().persist();
  const Status traced = session.write_trace();
  if (!traced.ok()) complain(traced.message);
  const int status = well && traced.ok() ? exit_done : exit_job_failed;
  return options.json ? finish_json(json_of(tuned), options, status) : finish(text_of(tuned), options, status);
}

}  // namespace kiln::host
