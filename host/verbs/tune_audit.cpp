// `kiln tune audit`: measures a sample of the winners again, and marks those that no longer hold.
#include "interrupt.hpp"
#include "report/text_table.hpp"
#include "verbs/audited.hpp"
#include "verbs/finish.hpp"
#include "verbs/verbs.hpp"

#include <kiln/bench.hpp>
#include <kiln/data.hpp>
#include <kiln/tuning_exchange.hpp>

#include <algorithm>
#include <cstdio>
#include <random>

namespace kiln::host {
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
  auto specs = foreign ? Result<std::vector<KernelSpec>>(exchange->foreign(device)) : session.runtime().tuned(device.id);
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
