// `kiln tune export` and `kiln tune import`: what was measured, as a file of text.
#include "interrupt.hpp"
#include "session.hpp"
#include "text_table.hpp"
#include "verbs/cache_verb.hpp"
#include "verbs/tune.hpp"
#include "verbs/verbs.hpp"

#include <kiln/cache_sharing.hpp>
#include <kiln/regular_file.hpp>
#include <kiln/tuning_exchange.hpp>

#include <algorithm>

namespace kiln::host {
namespace {

constexpr std::uint64_t most_database_bytes = 64 << 20;  // as the database itself

// The store of the session's generators, or the exit status to end with.
std::optional<int> open_store(Session& session, TuningStore*& store) {
  if (const auto end = session.open_runtime()) return *end;
  store = session.runtime().tuning();
  if (store != nullptr) return std::nullopt;
  complain("no loaded generator stores measurements: name one in plugins.load");
  return exit_job_failed;
}

}  // namespace

int tune_export(const Options& options) {
  Session session(options);
  TuningStore* store = nullptr;
  if (const auto end = open_store(session, store)) return *end;
  const std::string text = store->exported();
  if (Status status = emit(text, options.subject); !status.ok()) {
    complain(status.message);
    return exit_job_failed;
  }
  const auto lines = static_cast<std::size_t>(std::ranges::count(text, '\n'));
  const std::size_t records = lines == 0 ? 0 : lines - 1;  // the first line tells the form
  if (options.json) return finish_json({{"schema", 1}, {"file", options.subject}, {"records", records}}, options);
  return finish(visible(options.subject) + ": " + counted(records, "record") + "\n", options);
}

int tune_import(const Options& options) {
  const Result<std::string> text = read_whole_file(options.subject, most_database_bytes);
  if (!text) {
    complain(text.error().message);
    return exit_usage;
  }
  Session session(options);
  TuningStore* store = nullptr;
  if (const auto end = open_store(session, store)) return *end;
  const auto merged = store->merge(*text);
  if (!merged) {
    complain("file " + visible(options.subject) + ": " + merged.error().message);
    return exit_job_failed;
  }
  if (options.json) {
    return finish_json(
        {{"schema", 1}, {"taken", merged->taken}, {"older", merged->older}, {"damaged", merged->damaged}}, options);
  }
  return finish("imported " + counted(merged->taken, "record") + "; " + std::to_string(merged->older) +
                    " not newer than the stored ones, " + std::to_string(merged->damaged) + " damaged\n",
                options);
}

// `kiln tune push` and `kiln tune pull`: winners that machines with the same device share through the remotes.

namespace {

// What one device has got from the remotes.
struct PulledTuning {
  std::string device;
  struct Remote {
    TuningOutcome outcome;
    MergedTuning merged;
  };
  std::vector<Remote> remotes;
  std::size_t waiting = 0;  // winners that were not used before the sample
  std::vector<Audited> sample;
  std::size_t accepted = 0;  // winners that are used from now on

  bool well() const {
    return std::ranges::all_of(remotes, [](const Remote& remote) { return remote.outcome.failure.ok(); }) &&
           std::ranges::all_of(sample, [](const Audited& one) { return one.status.ok(); });
  }
};

// The devices with tuned kernels, and the exchange of their generators; or the exit status to end with.
std::optional<int> open_exchange(Session& session, TuningExchange*& exchange, std::vector<DeviceInfo>& devices) {
  if (const auto end = session.open_runtime()) return *end;
  if (const auto end = session.check_devices()) return *end;
  exchange = dynamic_cast<TuningExchange*>(session.runtime().tuning());
  if (exchange == nullptr) {
    complain("no loaded generator exchanges measurements: name one in plugins.load");
    return exit_job_failed;
  }
  const std::string& asked = session.options().device;
  for (DeviceInfo& device : session.devices_named(asked)) {
    if (!device.usable && !asked.empty()) {
      complain(visible("device " + asked + ": " + device.why_not));
      return exit_no_device;
    }
    if (device.usable && !device.dialects.empty()) devices.push_back(std::move(device));
  }
  return std::nullopt;
}

// Stores the winners of the remotes; they are not used yet.
Result<std::vector<PulledTuning::Remote>> merge_remotes(Session& session, TuningExchange& exchange,
                                                        const DeviceInfo& device) {
  auto outcomes = pull_tuning(session.config().cache, stores_of(session.registry()), device);
  if (!outcomes) return std::move(outcomes).error();
  std::vector<PulledTuning::Remote> remotes;
  for (TuningOutcome& outcome : *outcomes) {
    MergedTuning merged;
    if (outcome.failure.ok() && !outcome.text.empty()) {
      const auto done = exchange.merge_foreign(outcome.text, device);
      if (done) {
        merged = *done;
      } else {
        outcome.failure = done.error().within("remote " + outcome.url);
      }
    }
    remotes.push_back({std::move(outcome), merged});
  }
  return remotes;
}

Json pull_tuning_json(const std::vector<PulledTuning>& pulled) {
  Json devices = Json::array();
  for (const PulledTuning& one : pulled) {
    Json remotes = Json::array();
    for (const auto& [outcome, merged] : one.remotes) {
      remotes.push_back({{"url", outcome.url},
                         {"taken", merged.taken},
                         {"older", merged.older},
                         {"damaged", merged.damaged},
                         {"refused", outcome.refused},
                         {"error", outcome.failure.ok() ? Json(nullptr) : Json(outcome.failure.message)}});
    }
    devices.push_back({{"device", one.device},
                       {"remotes", std::move(remotes)},
                       {"waiting", one.waiting},
                       {"sample", audited_json(one.sample)},
                       {"accepted", one.accepted}});
  }
  return {{"schema", 1}, {"devices", std::move(devices)}};
}

std::string pull_tuning_text(const std::vector<PulledTuning>& pulled) {
  std::string text;
  for (const PulledTuning& one : pulled) {
    for (const auto& [outcome, merged] : one.remotes) {
      text += visible(outcome.url) + ": " + counted(merged.taken, "winner") + " for " + one.device;
      if (merged.older != 0) text += "; " + std::to_string(merged.older) + " not needed here";
      if (merged.damaged != 0) text += "; " + std::to_string(merged.damaged) + " damaged";
      for (const auto& [reason, count] : outcome.refused) text += "; refused " + std::to_string(count) + ": " + reason;
      text += "\n";
    }
    text += audited_text(one.sample);
    if (one.waiting != 0) {
      text += std::to_string(one.accepted) + " of " + counted(one.waiting, "winner") + " of other machines are used\n";
    }
  }
  return text.empty() ? "no device here is tuned\n" : text;
}

}  // namespace

int tune_push(const Options& options) {
  Session session(options);
  TuningExchange* exchange = nullptr;
  std::vector<DeviceInfo> devices;
  if (const auto end = open_exchange(session, exchange, devices)) return *end;
  bool well = true;
  Json json = Json::array();
  std::string text;
  for (const DeviceInfo& device : devices) {
    // What is in a remote is replaced, so that its winners have to be among those that are written.
    const auto read = merge_remotes(session, *exchange, device);
    if (!read) return complain_of(read.error());
    CacheConfig cache = session.config().cache;
    Json remotes = Json::array();
    bool all_read = true;
    for (const PulledTuning::Remote& remote : *read) {
      const TuningOutcome& outcome = remote.outcome;
      if (outcome.failure.ok()) continue;
      complain(visible(outcome.failure.message));
      all_read = well = false;
      std::erase_if(cache.remotes, [&](const RemoteConfig& one) { return one.url == outcome.url; });
      remotes.push_back({{"url", outcome.url}, {"error", outcome.failure.message}});
    }
    const std::string winners = exchange->winners_text(device);
    if (winners.empty() && all_read) continue;
    const std::size_t records = winners.empty() ? 0 : static_cast<std::size_t>(std::ranges::count(winners, '\n')) - 1;
    if (winners.empty() || (!all_read && std::ranges::none_of(cache.remotes, &RemoteConfig::writes))) {
      json.push_back({{"device", device.id}, {"winners", records}, {"remotes", std::move(remotes)}});
      continue;
    }
    const auto outcomes = push_tuning(cache, stores_of(session.registry()), device, winners);
    if (!outcomes) return complain_of(outcomes.error());
    for (const TuningOutcome& outcome : *outcomes) {
      const bool failed = !outcome.failure.ok();
      if (failed) complain(visible(outcome.failure.message));
      well = well && !failed;
      remotes.push_back({{"url", outcome.url}, {"error", failed ? Json(outcome.failure.message) : Json(nullptr)}});
      if (!failed) {
        text += visible(outcome.url) + ": wrote " + counted(records, "winner") + " for " + device.id + "\n";
      }
    }
    json.push_back({{"device", device.id}, {"winners", records}, {"remotes", std::move(remotes)}});
  }
  const int status = well ? exit_done : exit_job_failed;
  if (options.json) return finish_json({{"schema", 1}, {"devices", std::move(json)}}, options, status);
  return finish(text.empty() && well ? "nothing was tuned\n" : text, options, status);
}

int tune_pull(const Options& options) {
  Session session(options);
  TuningExchange* exchange = nullptr;
  std::vector<DeviceInfo> devices;
  if (const auto end = open_exchange(session, exchange, devices)) return *end;
  install_interrupt_handlers();
  bool well = true;
  std::vector<PulledTuning> pulled;
  ProgressLine line(options.progress);
  for (const DeviceInfo& device : devices) {
    auto remotes = merge_remotes(session, *exchange, device);
    if (!remotes) return complain_of(remotes.error());
    PulledTuning one{device.id, std::move(*remotes), 0, {}, 0};
    one.waiting = audit(session, device, WinnersOf::other_machines, line, one.sample);
    if (interrupted()) break;
    const auto holding = static_cast<std::size_t>(std::ranges::count_if(one.sample, &Audited::holds));
    one.accepted = holding;
    if (holding != 0 && holding == one.sample.size()) {
      const auto rest = exchange->accept_foreign(device);
      if (!rest) return complain_of(rest.error());
      one.accepted += *rest;
    }
    for (const auto& remote : one.remotes) {
      if (!remote.outcome.failure.ok()) complain(visible(remote.outcome.failure.message));
    }
    well = well && one.well();
    pulled.push_back(std::move(one));
  }
  if (interrupted()) end_by_signal();
  const int status = well ? exit_done : exit_job_failed;
  return options.json ? finish_json(pull_tuning_json(pulled), options, status)
                      : finish(pull_tuning_text(pulled), options, status);
}

}  // namespace kiln::host
