// `kiln cache warm`: programs linked and dispatched once before anybody waits for them. The one verb of the cache's
// that opens devices.
#include "exit_status.hpp"
#include "interrupt.hpp"
#include "report/human.hpp"
#include "report/text_table.hpp"
#include "session.hpp"
#include "verbs/cache/cache_verb.hpp"
#include "verbs/job_request.hpp"
#include "verbs/verbs.hpp"

namespace kiln::host {
namespace {

struct WarmedDevice {
  DeviceInfo device;
  WarmReport report;
};

double ms(std::uint64_t ns) { return static_cast<double>(ns) / 1e6; }

// The jobs of the file, as far as they can be made; complains of the others.
std::vector<WarmJob> jobs_of(const Config& config, bool& all_made) {
  std::vector<WarmJob> jobs;
  for (const JobConfig& job : config.jobs) {
    auto request = make_request(job);
    if (request) {
      jobs.push_back({request->name, std::move(request->spec)});
    } else {
      complain(visible("job '" + job.name + "': " + request.error().message));
      all_made = false;
    }
  }
  return jobs;
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
                    {"link_ms", ms(report.link_ns)},
                    {"ready_ms", ms(report.ready_ns)},
                    {"error", report.first_failure.ok() ? Json(nullptr) : Json(report.first_failure.message)}});
  }
  return {{"schema", 1}, {"devices", list}};
}

std::string warm_text(const std::vector<WarmedDevice>& devices) {
  std::string text;
  for (const auto& [device, report] : devices) {
    char line[160];
    std::snprintf(line, sizeof line, ": %zu of %zu linked in %.1f ms, %zu ready in %.1f ms, %zu built\n", report.linked,
                  report.found, ms(report.link_ns), report.ready, ms(report.ready_ns), report.built);
    text += device.id + line;
  }
  return text.empty() ? "no device stores programs: nothing to warm\n" : text;
}

}  // namespace

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
        continue;
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
