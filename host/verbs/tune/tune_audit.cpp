// `kiln tune audit`: measures a sample of the winners again, and marks those that no longer hold.
#include "interrupt.hpp"
#include "progress/progress_bar.hpp"
#include "report/human.hpp"
#include "runtime/bench_process.hpp"
#include "session.hpp"
#include "verbs/finish.hpp"
#include "data/job_request.hpp"
#include "verbs/verbs.hpp"

#include <algorithm>
#include <cstdio>
#include <random>

namespace kiln::host {
namespace {

struct Audited {
  std::string device, spec, words;
  Status status;
  TuneOutcome outcome;

  bool holds() const { return status.ok() && outcome.stale.empty(); }
};

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

Json json_of(const std::vector<Audited>& audited, std::size_t winners) {
  Json list = Json::array();
  for (const Audited& one : audited) {
    const auto ms = [&](std::uint64_t ns) { return ns == 0 ? Json(nullptr) : Json(static_cast<double>(ns) / 1e6); };
    list.push_back({{"device", one.device},
                    {"spec", one.spec},
                    {"variant", one.outcome.variant},
                    {"holds", one.holds()},
                    {"stale", one.outcome.stale.empty() ? Json(nullptr) : Json(one.outcome.stale)},
                    {"error", one.status.ok() ? Json(nullptr) : Json(one.status.message)},
                    {"wall_ms", ms(one.outcome.wall_ns)},
                    {"tuned_wall_ms", ms(one.outcome.recorded_wall_ns)}});
  }
  return {{"schema", 1}, {"winners", winners}, {"audited", list}};
}

std::string text_of(const std::vector<Audited>& audited, std::size_t winners) {
  if (winners == 0 && audited.empty()) return "nothing was tuned\n";
  std::string text;
  std::size_t holding = 0;
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
      ++holding;
    } else {
      text += "stale: " + visible(one.outcome.stale);
    }
    text += "\n";
    if (!one.outcome.variant.empty()) text += "  " + visible(one.outcome.variant) + "\n";
  }
  return text + std::to_string(holding) + " of " + std::to_string(audited.size()) + " hold; " +
         counted(winners, "winner") + " in all\n";
}

// A winner to measure again.
struct Winner {
  KernelSpec spec;
  std::string words;
  BenchSetup setup;
};

// What was tuned on the device: shapes by their records, kernels of the user's own by the configuration's jobs, since a
// record does not hold their text. A job that cannot be read is put among the audited, and costs no other.
Result<std::vector<Winner>> winners_on(const DeviceInfo& device, const ConfigSources& sources, Session& session,
                                       std::vector<Audited>& audited) {
  auto specs = session.runtime().tuned(device.id);
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
  TuningStore* store = session.runtime().tuning();
  for (const JobConfig& job : session.config().jobs) {
    if (store == nullptr || job.op != "kernel" || job.tune.empty()) continue;
    auto request = data::make_request(job);
    if (!request) {
      audited.push_back({device.id, {}, "kernel " + job.name, std::move(request).error(), {}});
      continue;
    }
    const TuningState state = store->state(request->spec, device);
    if (state != TuningState::tuned && state != TuningState::stale) continue;
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

int tune_audit(const Options& options) {
  Session session(options);
  if (const auto end = session.open_runtime()) return *end;
  if (const auto end = session.check_devices()) return *end;
  install_interrupt_handlers();
  ConfigSources sources = options.sources;
  if (sources.file) sources.file = std::filesystem::absolute(*sources.file);
  std::vector<Audited> audited;
  std::size_t winners = 0;
  {
    ProgressLine line(options.progress);
    for (const DeviceInfo& device : session.devices_named(options.device)) {
      if (!device.usable && !options.device.empty()) {
        complain(visible("device " + options.device + ": " + device.why_not));
        return exit_no_device;
      }
      if (!device.usable) continue;
      auto found = winners_on(device, sources, session, audited);
      if (!found) {
        audited.push_back({device.id, {}, "every winner", std::move(found).error(), {}});
        continue;
      }
      winners += found->size();
      std::vector<Winner> sample = sample_of(std::move(*found), options.tune.sample);
      ProgressBar bar(line, device.id + ": winner");
      for (std::size_t at = 0; at < sample.size(); ++at) {
        Winner& winner = sample[at];
        if (interrupted()) break;
        bar.at(at, sample.size(), winner.words);
        BenchProcess bench(PluginLoader::default_probe(), std::move(winner.setup), &interrupted());
        TuneOptions how;
        how.stop = &interrupted();
        how.audit = true;
        auto outcome = session.runtime().tune(winner.spec, device.id, bench, how);
        Audited one{device.id, canonical_text(winner.spec), std::move(winner.words), {}, {}};
        if (outcome) {
          one.outcome = std::move(*outcome);
        } else {
          one.status = std::move(outcome).error();
        }
        audited.push_back(std::move(one));
      }
    }
  }
  if (interrupted()) end_by_signal();
  const int status = std::ranges::all_of(audited, &Audited::holds) ? exit_done : exit_job_failed;
  return options.json ? finish_json(json_of(audited, winners), options, status)
                      : finish(text_of(audited, winners), options, status);
}

}  // namespace kiln::host
