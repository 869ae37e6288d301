// `kiln tune`: measures the variants of each job's kernel in a child process; the winners persist.
#include "verbs/tune.hpp"

#include "interrupt.hpp"
#include "progress.hpp"
#include "session.hpp"
#include "text_table.hpp"
#include "verbs/verbs.hpp"

#include <kiln/bench.hpp>
#include <kiln/data.hpp>
#include <kiln/digest.hpp>
#include <kiln/tuning_exchange.hpp>

#include <algorithm>
#include <cstdio>
#include <random>

namespace kiln::host {
namespace {

struct TunedJob {
  std::string name, device;
  Status status;
  double flops = 0;
  TuneOutcome outcome;
};

double rate(double flops, std::uint64_t ns) { return ns == 0 ? 0.0 : flops / static_cast<double>(ns); }

// Rates where the operations are known, else times.
std::string figures(const TunedJob& job) {
  const TuneOutcome& o = job.outcome;
  char text[160];
  if (job.flops > 0) {
    std::snprintf(text, sizeof text, "%.1f GFLOP/s NCHW to NCHW, %.1f on the device (plain: %.1f)",
                  rate(job.flops, o.wall_ns), rate(job.flops, o.device_ns), rate(job.flops, o.baseline_device_ns));
  } else {
    std::snprintf(text, sizeof text, "%.3f ms, %.3f on the device (first variant: %.3f)", to_ms(o.wall_ns),
                  to_ms(o.device_ns), to_ms(o.baseline_device_ns));
  }
  return text;
}

Json json_of(const std::vector<TunedJob>& jobs) {
  Json list = Json::array();
  for (const TunedJob& job : jobs) {
    const TuneOutcome& outcome = job.outcome;
    const bool ok = job.status.ok();
    const auto ms_or_null = [&](std::uint64_t ns) { return ok ? known(to_ms(ns)) : Json(nullptr); };
    const auto rate_or_null = [&](std::uint64_t ns) { return ok ? known(rate(job.flops, ns)) : Json(nullptr); };
    list.push_back({{"name", job.name},
                    {"device", job.device},
                    {"error", ok ? Json(nullptr) : Json(job.status.message)},
                    {"variant", ok ? Json(outcome.variant) : Json(nullptr)},
                    {"ms", ms_or_null(outcome.wall_ns)},
                    {"baseline_ms", ms_or_null(outcome.baseline_wall_ns)},
                    {"gflops", rate_or_null(outcome.wall_ns)},
                    {"gflops_device", rate_or_null(outcome.device_ns)},
                    {"baseline_gflops_device", rate_or_null(outcome.baseline_device_ns)},
                    {"baseline_gflops", rate_or_null(outcome.baseline_wall_ns)},
                    {"decision", ok ? Json(to_string(outcome.decision)) : Json(nullptr)},
                    {"note", text_or_null(outcome.note)},
                    {"incumbent", text_or_null(outcome.incumbent)},
                    {"incumbent_ms", known(to_ms(outcome.incumbent_wall_ns))},
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
  if (session.config().jobs.empty()) {
    return session.refuse("no [[job]]: nothing to tune", options.sources.file.value_or("the configuration").string());
  }
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

// `kiln tune audit`: measures a sample of the winners again, and marks those that no longer hold.

namespace {

// "1x64x56x56 to 64, 3x3, stride 1, pad 1", and what is not usual.
std::string words_of(const Conv2dSpec& s) {
  const auto pair = [](std::int64_t y, std::int64_t x) {
    std::string text = std::to_string(y);
    if (x != y) text += "," + std::to_string(x);
    return text;
  };
  std::string words;
  for (const std::int64_t extent : {s.n, s.c, s.h, s.w}) words += (words.empty() ? "" : "x") + std::to_string(extent);
  words += " to " + std::to_string(s.k) + ", " + std::to_string(s.r) + "x" + std::to_string(s.s);
  words += ", stride " + pair(s.stride_y, s.stride_x) + ", pad " + pair(s.pad_y, s.pad_x);
  if (s.dilation_y != 1 || s.dilation_x != 1) words += ", dilation " + pair(s.dilation_y, s.dilation_x);
  if (s.groups != 1) words += ", groups " + std::to_string(s.groups);
  if (s.bias == Bias::per_channel) words += ", bias";
  if (s.activation == Activation::relu) words += ", relu";
  if (s.accuracy == Accuracy::winograd) words += ", winograd allowed";
  return words;
}

// "1024x512 by 512x256".
std::string words_of(const GemmSpec& s) {
  std::string words =
      std::to_string(s.m) + "x" + std::to_string(s.k) + " by " + std::to_string(s.k) + "x" + std::to_string(s.n);
  if (s.bias == Bias::per_channel) words += ", bias";
  if (s.activation == Activation::relu) words += ", relu";
  return words;
}

// A winner to measure again.
struct Winner {
  KernelSpec spec;
  std::string words;
  BenchSetup setup;
};

// What was tuned on the device: shapes by their records, kernels of the user's own by the configuration's jobs, since a
// record does not hold their text. A job that cannot be read is put among the audited, and costs no other.
Result<std::vector<Winner>> winners_on(const DeviceInfo& device, WinnersOf of, const ConfigSources& sources,
                                       Session& session, std::vector<Audited>& audited) {
  const bool foreign = of == WinnersOf::other_machines;
  TuningStore* store = session.runtime().tuning();
  auto* const exchange = dynamic_cast<TuningExchange*>(store);
  if (foreign && exchange == nullptr) return std::vector<Winner>();
  auto specs =
      foreign ? Result<std::vector<KernelSpec>>(exchange->foreign(device)) : session.runtime().tuned(device.id);
  if (!specs) return std::move(specs).error();
  std::vector<Winner> winners;
  for (KernelSpec& spec : *specs) {
    BenchSetup setup{sources, device.id, {}};
    std::string words;
    const auto take = [&](const auto& shape) {
      words = words_of(shape);
      setup.subject = shape;
    };
    if (const auto* conv = std::get_if<Conv2dSpec>(&spec)) take(*conv);
    if (const auto* gemm = std::get_if<GemmSpec>(&spec)) take(*gemm);
    winners.push_back({std::move(spec), std::move(words), std::move(setup)});
  }
  for (const JobConfig& job : session.config().jobs) {
    if (store == nullptr || job.op != "kernel" || job.tune.empty()) continue;
    auto request = data::make_request(job);
    if (!request) {
      audited.push_back({device.id, {}, "kernel " + job.name, std::move(request).error(), {}});
      continue;
    }
    const TuningState state = store->state(request->spec, device);
    const bool has_winner = state == TuningState::tuned || state == TuningState::stale;
    if (foreign ? !exchange->is_foreign(request->spec, device) : !has_winner) continue;
    winners.push_back({std::move(request->spec), "kernel " + job.name, BenchSetup{sources, device.id, job.name}});
  }
  return winners;
}

// Which ones differ from audit to audit, so that each is met in time.
std::vector<Winner> sample_of(std::vector<Winner> winners, std::size_t most) {
  std::mt19937 random{std::random_device{}()};
  std::vector<Winner> sample;
  std::sample(std::make_move_iterator(winners.begin()), std::make_move_iterator(winners.end()),
              std::back_inserter(sample), static_cast<std::ptrdiff_t>(most), random);
  return sample;
}

}  // namespace

Json audited_json(const std::vector<Audited>& audited) {
  Json list = Json::array();
  for (const Audited& one : audited) {
    list.push_back({{"device", one.device},
                    {"spec", text_or_null(one.spec)},
                    {"variant", text_or_null(one.outcome.variant)},
                    {"holds", one.holds()},
                    {"stale", text_or_null(one.outcome.stale)},
                    {"error", one.status.ok() ? Json(nullptr) : Json(one.status.message)},
                    {"wall_ms", known(to_ms(one.outcome.wall_ns))},
                    {"tuned_wall_ms", known(to_ms(one.outcome.recorded_wall_ns))}});
  }
  return list;
}

std::string audited_text(const std::vector<Audited>& audited) {
  std::string text;
  for (const Audited& one : audited) {
    text += visible(one.words) + " on " + one.device + ": ";
    if (!one.status.ok()) {
      text += "not measured: " + visible(one.status.message);
    } else if (one.holds()) {
      char times[96];
      std::snprintf(times, sizeof times, "holds: %.3f ms, when tuned %.3f ms",
                    static_cast<double>(one.outcome.wall_ns) / 1e6,
                    static_cast<double>(one.outcome.recorded_wall_ns) / 1e6);
      text += times;
    } else {
      text += "stale: " + visible(one.outcome.stale);
    }
    text += "\n";
    if (!one.outcome.variant.empty()) text += "  " + visible(one.outcome.variant) + "\n";
  }
  return text;
}

std::size_t audit(Session& session, const DeviceInfo& device, WinnersOf of, ProgressLine& line,
                  std::vector<Audited>& audited) {
  ConfigSources sources = session.options().sources;
  if (sources.file) sources.file = std::filesystem::absolute(*sources.file);
  auto found = winners_on(device, of, sources, session, audited);
  if (!found) {
    audited.push_back({device.id, {}, "every winner", std::move(found).error(), {}});
    return 0;
  }
  const std::size_t winners = found->size();
  std::vector<Winner> sample = sample_of(std::move(*found), session.options().tune.sample);
  ProgressBar bar(line, device.id + ": winner");
  for (std::size_t at = 0; at < sample.size(); ++at) {
    Winner& winner = sample[at];
    if (interrupted()) break;
    bar.at(at, sample.size(), winner.words);
    const auto bench = open_bench(PluginLoader::default_probe(), std::move(winner.setup), &interrupted());
    TuneOptions how;
    how.stop = &interrupted();
    how.audit = true;
    auto outcome = session.runtime().tune(winner.spec, device.id, *bench, how);
    Audited one{device.id, canonical_text(winner.spec), std::move(winner.words), {}, {}};
    if (outcome) {
      one.outcome = std::move(*outcome);
    } else {
      one.status = std::move(outcome).error();
    }
    audited.push_back(std::move(one));
  }
  return winners;
}

int tune_audit(const Options& options) {
  Session session(options);
  if (const auto end = session.open_runtime()) return *end;
  if (const auto end = session.check_devices()) return *end;
  install_interrupt_handlers();
  std::vector<Audited> audited;
  std::size_t winners = 0;
  {
    ProgressLine line(options.progress);
    for (const DeviceInfo& device : session.devices_named(options.device)) {
      if (!device.usable && !options.device.empty()) {
        complain(visible("device " + options.device + ": " + device.why_not));
        return exit_no_device;
      }
      if (device.usable) winners += audit(session, device, WinnersOf::this_machine, line, audited);
    }
  }
  if (interrupted()) end_by_signal();
  const auto holding = std::ranges::count_if(audited, &Audited::holds);
  const int status = static_cast<std::size_t>(holding) == audited.size() ? exit_done : exit_job_failed;
  if (options.json) {
    return finish_json({{"schema", 1}, {"winners", winners}, {"audited", audited_json(audited)}}, options, status);
  }
  if (winners == 0 && audited.empty()) return finish("nothing was tuned\n", options, status);
  return finish(audited_text(audited) + std::to_string(holding) + " of " + std::to_string(audited.size()) + " hold; " +
                    counted(winners, "winner") + " in all\n",
                options, status);
}

}  // namespace kiln::host
