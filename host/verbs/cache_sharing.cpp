// `kiln cache export` and `kiln cache import`: one signed file from machine to machine.
#include "console.hpp"
#include "session.hpp"
#include "text_table.hpp"
#include "verbs/cache_verb.hpp"
#include "verbs/verbs.hpp"

#include <kiln/cache_sharing.hpp>

namespace kiln::host {
namespace {

Json export_json(const std::string& file, const BundleExport& made) {
  Json json{{"schema", 1},
            {"file", file},
            {"programs", made.programs},
            {"bytes", made.bytes},
            {"public_key", made.public_key}};
  json["bad"] = bad_json(made.bad);
  return json;
}

std::string export_text(const std::string& file, const BundleExport& made) {
  std::string text = visible(file) + ": " + counted(made.programs, "program") + ", " + human_size(made.bytes) + "\n";
  if (!made.bad.empty()) text += std::to_string(made.bad.size()) + " bad, skipped\n";
  return text + "signed with key " + made.public_key + "\n";
}

Json import_json(const std::string& file, const BundleImport& taken) {
  return {{"schema", 1},
          {"file", file},
          {"programs", taken.programs},
          {"programs_already", taken.programs_already},
          {"programs_of_others", taken.programs_of_others},
          {"programs_quarantined", taken.programs_quarantined},
          {"bytes", taken.bytes},
          {"pruned", taken.pruned}};
}

std::string import_text(const BundleImport& taken) {
  std::string text = "imported " + counted(taken.programs, "program") + ", " + human_size(taken.bytes) + "\n";
  if (taken.programs_already != 0) text += "already stored: " + counted(taken.programs_already, "program") + "\n";
  if (taken.programs_of_others != 0) {
    text += "skipped: " + counted(taken.programs_of_others, "program") + " for other devices or drivers\n";
  }
  if (taken.programs_quarantined != 0) {
    text += "skipped: " + counted(taken.programs_quarantined, "program") + " that crashed a process here\n";
  }
  if (taken.pruned != 0) text += "removed: " + counted(taken.pruned, "program") + ", because of max_disk\n";
  return text;
}

}  // namespace

std::vector<DeviceInfo> storing_devices(Session& session) {
  const std::string& device = session.options().device;
  session.runtime().open_ahead(device.empty() ? session.config().device.prefer : device);
  std::vector<DeviceInfo> devices;
  for (DeviceInfo& known : session.runtime().known_devices()) {
    if (known.usable && known.serializes && !known.driver_identity.empty()) devices.push_back(std::move(known));
  }
  return devices;
}

int cache_export(const Options& options) {
  CacheConfig cache;
  if (const auto end = read_cache_config(options, cache)) return *end;
  if (options.cache.show_key) {
    if (!options.subject.empty()) {
      complain("kiln cache export --show-key: unexpected argument '" + options.subject +
               "'. --show-key writes no file");
      return exit_usage;
    }
    const auto key = bundle_public_key(cache);
    if (!key) return complain_of(key.error());
    if (options.json) return finish_json({{"schema", 1}, {"public_key", *key}}, options);
    return finish(*key + "\n", options);
  }
  if (options.subject.empty()) {
    complain("kiln cache export: no file named; usage: kiln cache export FILE [LABEL|KEY...]");
    return exit_usage;
  }
  const auto made = with_progress(options.progress, "exported", [&](const CacheProgress& progress) {
    return export_cache(cache, options.subject, options.subjects, progress);
  });
  if (!made) return complain_of(made.error());
  for (const BadEntry& bad : made->bad) {
    complain(visible("program " + short_key(bad.key) + " (" + bad.label + "): " + bad.reason + ": " + bad.why));
  }
  const int status = made->bad.empty() ? exit_done : exit_job_failed;
  return options.json ? finish_json(export_json(options.subject, *made), options, status)
                      : finish(export_text(options.subject, *made), options, status);
}

int cache_import(const Options& options) {
  if (options.cache.trust.empty()) {
    complain(
        "kiln cache import: no --trust (expected the public key of the exporting machine). Print the key there with "
        "`kiln cache export --show-key`");
    return exit_usage;
  }
  ImportRequest request;
  CacheConfig cache;
  request.file = options.subject;
  request.trust = options.cache.trust;
  {
    // The drivers are closed before programs are stored.
    Session session(options);
    if (const auto end = session.open_runtime()) return *end;
    if (const auto end = session.check_devices()) return *end;
    cache = session.config().cache;
    request.devices = storing_devices(session);
  }
  const auto taken = with_progress(options.progress, "imported", [&](const CacheProgress& progress) {
    request.progress = progress;
    return import_cache(cache, request);
  });
  if (!taken) return complain_of(taken.error());
  return options.json ? finish_json(import_json(options.subject, *taken), options)
                      : finish(import_text(*taken), options);
}

// `kiln cache key …`, `push`, `pull`, `remote status` and `layer create`: programs that machines share.

namespace {

KeyFolder key_folder(const Options& options) { return options.cache.system ? KeyFolder::system : KeyFolder::user; }

std::string state_of(const SharingKey& key) {
  if (key.revoked) return "revoked";
  return key.expired ? "expired" : "trusted";
}

Json key_json(const SharingKey& key) {
  return {{"name", key.name},       {"public_key", key.public_key},
          {"state", state_of(key)}, {"until", key.until.empty() ? Json(nullptr) : Json(key.until)},
          {"signs", key.signs},     {"file", key.file.string()}};
}

int finish_key(const Result<SharingKey>& key, const Options& options, const std::string& done) {
  if (!key) return complain_of(key.error());
  if (options.json) return finish_json({{"schema", 1}, {"key", key_json(*key)}}, options);
  return finish(done + " key '" + key->name + "'" + (key->until.empty() ? "" : " until " + key->until) + ": " +
                    key->public_key + "\n",
                options);
}

Json error_json(const Status& status) { return status.ok() ? Json(nullptr) : Json(status.message); }

Json push_json(const PushOutcome& outcome) {
  return {{"url", outcome.url},
          {"written", outcome.written},
          {"bytes", outcome.bytes},
          {"already", outcome.already},
          {"replaced", outcome.replaced},
          {"bad", bad_json(outcome.bad)},
          {"error", error_json(outcome.failure)}};
}

std::string push_text(const PushOutcome& outcome) {
  std::string text =
      visible(outcome.url) + ": wrote " + counted(outcome.written, "program") + ", " + human_size(outcome.bytes);
  if (outcome.replaced != 0) {
    text += ", of which " + std::to_string(outcome.replaced) + " replace one that this configuration does not accept";
  }
  if (outcome.already != 0) text += "; " + std::to_string(outcome.already) + " already there";
  if (!outcome.bad.empty()) text += "; " + std::to_string(outcome.bad.size()) + " bad, skipped";
  return text + "\n";
}

Json pull_json(const PullOutcome& outcome) {
  Json refused = Json::object();
  for (const auto& [reason, count] : outcome.refused) refused[reason] = count;
  return {{"url", outcome.url},
          {"programs", outcome.stored.programs},
          {"programs_already", outcome.stored.programs_already},
          {"programs_of_others", outcome.stored.programs_of_others},
          {"programs_quarantined", outcome.stored.programs_quarantined},
          {"bytes", outcome.stored.bytes},
          {"pruned", outcome.stored.pruned},
          {"refused", std::move(refused)},
          {"error", error_json(outcome.failure)}};
}

std::string pull_text(const PullOutcome& outcome) {
  const BundleImport& stored = outcome.stored;
  std::string text =
      visible(outcome.url) + ": stored " + counted(stored.programs, "program") + ", " + human_size(stored.bytes);
  if (stored.programs_already != 0) text += "; " + std::to_string(stored.programs_already) + " already stored";
  if (stored.programs_of_others != 0) text += "; " + std::to_string(stored.programs_of_others) + " for other devices";
  if (stored.programs_quarantined != 0) {
    text += "; " + std::to_string(stored.programs_quarantined) + " that crashed a process here";
  }
  if (stored.pruned != 0) text += "; removed " + counted(stored.pruned, "program") + ", because of max_disk";
  for (const auto& [reason, count] : outcome.refused) text += "; refused " + std::to_string(count) + ": " + reason;
  return text + "\n";
}

Json status_json(const RemoteStatus& remote) {
  Json accepted = Json::array();
  for (const SharingKey& key : remote.accepted) accepted.push_back(key_json(key));
  Json totals = Json::object();
  for (const auto& [name, count] : remote_total_names()) totals[name] = remote.totals.*count;
  return {{"url", remote.url},
          {"mode", remote.writes ? "read_write" : "read"},
          {"reachable", remote.answer.ok()},
          {"error", error_json(remote.answer)},
          {"answer_ms", remote.answer.ok() ? Json(remote.answer_ms) : Json(nullptr)},
          {"round_trip_ms", known(remote.round_trip_ms)},
          {"failures", remote.failures},
          {"closed_for_ms", remote.closed_for_ms},
          {"totals", std::move(totals)},
          {"accepted", std::move(accepted)},
          {"problems", remote.problems}};
}

std::string status_text(const RemoteStatus& remote) {
  std::string text = visible(remote.url) + " (" + (remote.writes ? "read_write" : "read") + ")\n";
  text += remote.answer.ok() ? "  answers in " + human_ms(remote.answer_ms) + "\n"
                             : "  does not answer: " + visible(remote.answer.message) + "\n";
  if (remote.closed_for_ms > 0) {
    text += "  failed " + counted(remote.failures, "time") + " in a row; jobs sent no request for another " +
            human_ms(remote.closed_for_ms) + "\n";
  }
  if (remote.totals != RemoteTotals()) {
    text += "  all processes: " + std::to_string(remote.totals.found) + " found, " +
            std::to_string(remote.totals.absent) + " absent, " + std::to_string(remote.totals.refused) + " refused, " +
            std::to_string(remote.totals.failed) + " failed, " + std::to_string(remote.totals.written) + " written\n";
  }
  for (const SharingKey& key : remote.accepted) {
    text += "  accepts key '" + key.name + "' (" + state_of(key) + (key.until.empty() ? "" : ", until " + key.until) +
            ")\n";
  }
  for (const std::string& problem : remote.problems) text += "  " + visible(problem) + "\n";
  return text;
}

// The sums of all processes.
std::string shared_text(const SharedCounts& counts) {
  TextTable table({{"all processes", Align::left}, {"", Align::right}});
  bool any = false;
  for (const auto& [name, value] : shared_count_names()) {
    if (counts.*value == 0) continue;
    table.add({name, std::to_string(counts.*value)});
    any = true;
  }
  return any ? "\n" + table.text() : std::string();
}

// One line, or one object, for each remote. Status 1 if one of them failed.
template <class Outcome, class ToJson, class ToText>
int finish_remotes(const Result<std::vector<Outcome>>& outcomes, const Options& options, const ToJson& to_json,
                   const ToText& to_text, int status = exit_done) {
  if (!outcomes) return complain_of(outcomes.error());
  Json remotes = Json::array();
  std::string text;
  for (const Outcome& outcome : *outcomes) {
    if (!outcome.failure.ok()) {
      complain(visible(outcome.failure.message));
      status = exit_job_failed;
    }
    remotes.push_back(to_json(outcome));
    text += to_text(outcome);
  }
  return options.json ? finish_json({{"schema", 1}, {"remotes", std::move(remotes)}}, options, status)
                      : finish(text, options, status);
}

}  // namespace

RemoteStores stores_of(const Registry& registry) {
  RemoteStores stores;
  for (const auto& [scheme, remote] : registry.remotes()) stores.emplace(scheme, remote.make);
  return stores;
}

int cache_key_create(const Options& options) {
  CacheConfig cache;
  if (const auto end = read_cache_config(options, cache)) return *end;
  return finish_key(create_sharing_key(cache, options.subject, options.cache.until, key_folder(options)), options,
                    "created");
}

int cache_key_trust(const Options& options) {
  CacheConfig cache;
  if (const auto end = read_cache_config(options, cache)) return *end;
  if (options.subjects.size() != 1) {
    complain("kiln cache key trust: found " + counted(options.subjects.size(), "key") +
             ", expected one; usage: kiln cache key trust NAME KEY|FILE");
    return exit_usage;
  }
  return finish_key(
      trust_sharing_key(cache, options.subject, options.subjects.front(), options.cache.until, key_folder(options)),
      options, "trusted");
}

int cache_key_revoke(const Options& options) {
  CacheConfig cache;
  if (const auto end = read_cache_config(options, cache)) return *end;
  return finish_key(revoke_sharing_key(cache, options.subject, key_folder(options)), options, "revoked");
}

int cache_key_list(const Options& options) {
  CacheConfig cache;
  if (const auto end = read_cache_config(options, cache)) return *end;
  const SharingKeys all = sharing_keys(cache);
  for (const std::string& problem : all.problems) complain(visible(problem));
  const int status = all.problems.empty() ? exit_done : exit_job_failed;
  if (options.json) {
    Json keys = Json::array();
    for (const SharingKey& key : all.keys) keys.push_back(key_json(key));
    return finish_json({{"schema", 1}, {"keys", std::move(keys)}, {"problems", all.problems}}, options, status);
  }
  if (all.keys.empty()) return finish("no key is trusted\n", options, status);
  TextTable table({{"key", Align::left},
                   {"state", Align::left},
                   {"until", Align::left},
                   {"signs", Align::left},
                   {"public key", Align::left}});
  for (const SharingKey& key : all.keys) {
    table.add({key.name, state_of(key), key.until.empty() ? "–" : key.until, key.signs ? "yes" : "no", key.public_key});
  }
  return finish(table.text(), options, status);
}

int cache_push(const Options& options) {
  Session session(options);
  if (const auto end = session.open_plugins()) return *end;
  const auto outcomes = with_progress(options.progress, "written", [&](const CacheProgress& progress) {
    return push_cache(session.config().cache, stores_of(session.registry()), options.subjects, progress);
  });
  int status = exit_done;
  if (outcomes) {
    for (const PushOutcome& outcome : *outcomes) {
      complain_of_bad(outcome.bad);
      if (!outcome.bad.empty()) status = exit_job_failed;
    }
  }
  return finish_remotes(outcomes, options, push_json, push_text, status);
}

int cache_pull(const Options& options) {
  CacheConfig cache;
  RemoteStores stores;
  std::vector<DeviceInfo> devices;
  // The plugins stay loaded; the drivers are closed before programs are stored.
  std::optional<Session> session(std::in_place, options);
  if (const auto end = session->open_runtime()) return *end;
  if (const auto end = session->check_devices()) return *end;
  cache = session->config().cache;
  stores = stores_of(session->registry());
  devices = storing_devices(*session);
  session.reset();
  const auto outcomes = with_progress(options.progress, "pulled", [&](const CacheProgress& progress) {
    return pull_cache(cache, stores, devices, progress);
  });
  return finish_remotes(outcomes, options, pull_json, pull_text);
}

int cache_remote_status(const Options& options) {
  Session session(options);
  if (const auto end = session.open_plugins()) return *end;
  const CacheConfig& cache = session.config().cache;
  const std::vector<RemoteStatus> remotes = remote_status(cache, stores_of(session.registry()));
  const auto totals = cache_totals(cache);
  if (!totals) complain(visible(totals.error().message));
  int status = totals ? exit_done : exit_job_failed;
  Json json = Json::array();
  std::string text = remotes.empty() ? "no [[cache.remote]] is configured\n" : "";
  for (const RemoteStatus& remote : remotes) {
    if (!remote.answer.ok() || !remote.problems.empty()) status = exit_job_failed;
    json.push_back(status_json(remote));
    text += status_text(remote);
  }
  if (options.json) {
    const Json counts = totals ? shared_json(totals->counts.shared) : Json(nullptr);
    return finish_json({{"schema", 1}, {"remotes", std::move(json)}, {"counts", counts}}, options, status);
  }
  return finish(totals ? text + shared_text(totals->counts.shared) : text, options, status);
}

int cache_layer_create(const Options& options) {
  CacheConfig cache;
  if (const auto end = read_cache_config(options, cache)) return *end;
  if (options.cache.sign_with.empty()) {
    complain("kiln cache layer create: no --sign-with (expected the name of a key). `kiln cache key list` prints them");
    return exit_usage;
  }
  if (options.cache.from.empty() != options.cache.trust.empty()) {
    complain("kiln cache layer create: --from BUNDLE and --trust KEY must be used together (expected both or neither)");
    return exit_usage;
  }
  LayerRequest request{options.subject, options.cache.sign_with, options.subjects, options.cache.from,
                       options.cache.trust};
  const auto made = with_progress(options.progress, "written", [&](const CacheProgress& progress) {
    request.progress = progress;
    return create_layer(cache, request);
  });
  if (!made) return complain_of(made.error());
  complain_of_bad(made->bad);
  const int status = made->bad.empty() ? exit_done : exit_job_failed;
  if (options.json) {
    return finish_json({{"schema", 1},
                        {"folder", options.subject},
                        {"programs", made->programs},
                        {"bytes", made->bytes},
                        {"bad", bad_json(made->bad)}},
                       options, status);
  }
  return finish(
      visible(options.subject) + ": " + counted(made->programs, "program") + ", " + human_size(made->bytes) + "\n",
      options, status);
}

}  // namespace kiln::host
