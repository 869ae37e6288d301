// `kiln cache warm` and `kiln cache bake`: programs built before anybody waits for them, here and for other machines.
#include "console.hpp"
#include "interrupt.hpp"
#include "session.hpp"
#include "text_table.hpp"
#include "verbs/cache_verb.hpp"
#include "verbs/verbs.hpp"

#include <kiln/cache_sharing.hpp>
#include <kiln/data.hpp>
#include <kiln/offline_tools.hpp>

namespace kiln::host {
namespace {

struct WarmedDevice {
  DeviceInfo device;
  WarmReport report;
};

// The jobs of the file, as far as they can be made; complains of the others.
std::vector<WarmJob> jobs_of(const Config& config, bool& all_made) {
  std::vector<WarmJob> jobs;
  for (const JobConfig& job : config.jobs) {
    auto request = data::make_request(job);
    if (request) {
      jobs.push_back({request->name, std::move(request->spec)});
    } else {
      complain(visible("job '" + job.name + "': " + request.error().message));
      all_made = false;
    }
  }
  return jobs;
}

WarmReport failed_with(Status why) {
  WarmReport report;
  report.first_failure = std::move(why);
  return report;
}

Json warm_json(const std::vector<WarmedDevice>& devices) {
  Json list = Json::array();
  for (const auto& [device, report] : devices) {
    list.push_back({{"device", device.id},
                    {"found", report.found},
                    {"linked", report.linked},
                    {"ready", report.ready},
                    {"built", report.built},
                    {"failed", report.failed},
                    {"link_ms", to_ms(report.link_ns)},
                    {"ready_ms", to_ms(report.ready_ns)},
                    {"error", report.first_failure.ok() ? Json(nullptr) : Json(report.first_failure.message)}});
  }
  return {{"schema", 1}, {"devices", list}};
}

std::string warm_text(const std::vector<WarmedDevice>& devices) {
  std::string text;
  for (const auto& [device, report] : devices) {
    char line[160];
    std::snprintf(line, sizeof line, ": %zu of %zu linked in %.1f ms, %zu ready in %.1f ms, %zu built\n", report.linked,
                  report.found, to_ms(report.link_ns), report.ready, to_ms(report.ready_ns), report.built);
    text += device.id + line;
  }
  return text.empty() ? "no device stores programs: nothing to warm\n" : text;
}

struct BakedTarget {
  std::string target;
  WarmReport report;
};

// What --for names: a chip, for which a device only builds, or a device of this machine. `opened` keeps the first.
Result<WarmReport> bake_target(Session& session, const std::string& target, WarmRequest request,
                               std::vector<std::unique_ptr<Device>>& opened) {
  std::string here, why;
  for (const DeviceInfo& device : session.runtime().devices()) {
    if (!device.usable || !device.serializes) continue;
    if (device.id == target) {
      request.device = target;
      return session.runtime().warm(request);
    }
    here += (here.empty() ? "" : ", ") + device.id;
  }
  for (const auto& [name, registered] : session.registry().ahead_compilers()) {
    auto compiler = registered.make(session.offline_context(registered.plugin));
    if (!compiler) return compiler.error();
    auto device = (*compiler)->open(target);
    if (device) {
      opened.push_back(std::move(*device));
      return session.runtime().warm(request, *opened.back());
    }
    if (device.error().code != StatusCode::unsupported) return std::move(device).error();
    why += "; " + device.error().message;
  }
  return not_found("--for " + target + ": no device has this id (devices here: " + (here.empty() ? "none" : here) +
                   ")" +
                   (why.empty() ? "; no loaded plugin compiles ahead of time. Add amdgpu_pm4 to plugins.load" : why) +
                   ". Programs for other devices can only be built on those devices");
}

std::string bake_text(const std::vector<BakedTarget>& targets, const LayerOutcome* layer, const std::string& folder) {
  std::string text;
  for (const auto& [target, report] : targets) {
    text += visible(target) + ": " + counted(report.linked, "program") + ", " + std::to_string(report.built) +
            " built now\n";
    for (const std::string& job : report.unfitted) {
      text +=
          "  job '" + visible(job) + "' has no program for this target: the source can only be built on the device\n";
    }
  }
  if (layer == nullptr) return text;
  return text + visible(folder) + ": " + counted(layer->programs, "program") + ", " + human_size(layer->bytes) + "\n";
}

Json bake_json(const std::vector<BakedTarget>& targets, const LayerOutcome* layer, const std::string& folder) {
  Json list = Json::array();
  for (const auto& [target, report] : targets) {
    Json keys = Json::array();
    for (const Digest& key : report.keys) keys.push_back(key.hex());
    list.push_back({{"target", target},
                    {"programs", report.linked},
                    {"built", report.built},
                    {"failed", report.failed},
                    {"unfitted", report.unfitted},
                    {"keys", std::move(keys)},
                    {"error", report.first_failure.ok() ? Json(nullptr) : Json(report.first_failure.message)}});
  }
  Json json{{"schema", 1}, {"targets", std::move(list)}, {"layer", nullptr}};
  if (layer != nullptr) {
    json["layer"] = {
        {"folder", folder}, {"programs", layer->programs}, {"bytes", layer->bytes}, {"bad", bad_json(layer->bad)}};
  }
  return json;
}

constexpr std::chrono::seconds patience_with_drivers{10};

}  // namespace

int cache_bake(const Options& options) {
  const auto lacks = [](const char* what) {
    complain(std::string("kiln cache bake: no ") + what +
             "; usage: kiln cache bake CONFIG --for TARGET… --sign-with NAME --output DIR");
    return exit_usage;
  };
  if (options.cache.targets.empty()) return lacks("--for (expected a chip such as gfx1100, or a device)");
  if (options.cache.sign_with.empty()) return lacks("--sign-with (expected the name of a key)");
  if (!options.output) return lacks("--output (expected the folder of the layer)");
  Session session(options);
  if (const auto end = session.open_runtime(MissingPlugins::end, JobFiles::check)) return *end;
  install_interrupt_handlers();
  bool well = true;
  WarmRequest request;
  request.jobs = jobs_of(session.config(), well);
  request.stop = &interrupted();
  if (request.jobs.empty()) return session.refuse("no [[job]]: nothing to build");
  const CacheConfig cache = session.config().cache;
  std::vector<BakedTarget> baked;
  {
    std::vector<std::unique_ptr<Device>> opened;  // outlives the runtime, which keeps its programs
    {
      ProgressLine line(options.progress);
      for (const std::string& target : options.cache.targets) {
        ProgressBar bar(line, target + ": program");
        request.progress = [&](std::size_t done, std::size_t of) { bar.at(done, of); };
        auto report = bake_target(session, target, request, opened);
        if (interrupted()) break;
        if (!report) {
          complain(visible(report.error().message));
          well = false;
          report = failed_with(report.error());
        }
        baked.push_back({target, std::move(*report)});
      }
    }
    (void)session.runtime().persist();
    session.close(patience_with_drivers);
  }
  if (interrupted()) end_by_signal();
  LayerRequest wanted;
  wanted.folder = *options.output;
  wanted.sign_with = options.cache.sign_with;
  for (const auto& [target, report] : baked) {
    if (report.failed != 0) complain(visible(target + ": " + report.first_failure.message));
    well = well && report.failed == 0;
    for (const Digest& key : report.keys) wanted.which.push_back(key.hex());
  }
  std::optional<LayerOutcome> layer;
  if (wanted.which.empty()) {
    // Where something failed, that has been told.
    if (well) complain("no job has a program for any --for target: no layer is written");
    well = false;
  } else {
    auto made = create_layer(cache, wanted);
    if (!made) return complain_of(made.error());
    complain_of_bad(made->bad);
    well = well && made->bad.empty();
    layer = std::move(*made);
  }
  Options told = options;
  told.output.reset();  // the folder of the layer; what is told of it goes to standard output
  const int status = well ? exit_done : exit_job_failed;
  const LayerOutcome* const written = layer ? &*layer : nullptr;
  const std::string folder = wanted.folder.string();
  return options.json ? finish_json(bake_json(baked, written, folder), told, status)
                      : finish(bake_text(baked, written, folder), told, status);
}

int cache_warm(const Options& options) {
  Session session(options);
  if (const auto end = session.open_runtime(MissingPlugins::end, JobFiles::check)) return *end;
  if (const auto end = session.check_devices()) return *end;
  install_interrupt_handlers();
  bool well = true;
  WarmRequest request;
  request.jobs = jobs_of(session.config(), well);
  request.most = options.cache.top.value_or(SIZE_MAX);
  request.stop = &interrupted();
  const std::string asked = options.device.empty() ? session.config().device.prefer : options.device;
  std::vector<WarmedDevice> warmed;
  {
    ProgressLine line(options.progress);
    for (const DeviceInfo& device : session.devices_named(asked)) {
      if (!device.usable) {
        if (asked != "auto") complain(visible("device " + asked + ": " + device.why_not));
        well = well && asked == "auto";
        continue;
      }
      if (!device.serializes) continue;
      request.device = device.id;
      ProgressBar bar(line, device.id + ": program");
      request.progress = [&](std::size_t done, std::size_t of) { bar.at(done, of); };
      auto report = session.runtime().warm(request);
      if (!report) {
        complain(visible(report.error().message));
        well = false;
        report = failed_with(report.error());
      }
      warmed.push_back({device, std::move(*report)});
    }
  }
  for (const auto& [device, report] : warmed) {
    if (report.failed != 0) complain(visible(device.id + ": " + report.first_failure.message));
    well = well && report.failed == 0;
  }
  if (interrupted()) end_by_signal();
  if (session.config().cache.auto_save) (void)session.runtime().persist();
  const int status = well ? exit_done : exit_job_failed;
  return options.json ? finish_json(warm_json(warmed), options, status) : finish(warm_text(warmed), options, status);
}

}  // namespace kiln::host
