// `kiln cache export` and `kiln cache import`: one signed file from machine to machine.
#include "console.hpp"
#include "exit_status.hpp"
#include "report/text_table.hpp"
#include "session.hpp"
#include "verbs/cache/cache_verb.hpp"
#include "verbs/verbs.hpp"

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
      complain("kiln cache export --show-key: unexpected argument '" + options.subject + "': it writes no file");
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
        "kiln cache import: no --trust (expected the exporter's public key). Print it there with `kiln cache export "
        "--show-key`");
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

}  // namespace kiln::host
