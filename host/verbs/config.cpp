#include "session.hpp"
#include "text_table.hpp"
#include "verbs/job_order.hpp"
#include "verbs/verbs.hpp"

#include <kiln/data.hpp>

#include <algorithm>

namespace kiln::host {
namespace {

// A job as it would run on --device: its programs made, nothing run.
struct CheckedJob {
  RunReport report;
  bool waits = false;  // not made: it reads what a job before it writes
};

Json checked_json(const std::vector<CheckedJob>& jobs) {
  Json list = Json::array();
  for (const auto& [report, waits] : jobs) {
    list.push_back({{"name", report.name},
                    {"device", text_or_null(report.device.id)},
                    {"variant", text_or_null(report.variant)},
                    {"tier", report.tier == Tier::invalid ? Json(nullptr) : Json(to_string(report.tier))},
                    {"notes", report.notes}});
  }
  return list;
}

// Makes the programs of every job; what fails is a problem at the place of its source. Answers as run() would end.
std::optional<int> check_on_device(Session& session, const Options& options, std::vector<CheckedJob>& checked) {
  if (const auto end = session.open_runtime(MissingPlugins::end, JobFiles::check)) return end;
  if (const auto end = session.check_devices()) return end;
  const std::vector<JobConfig>& jobs = session.config().jobs;
  const auto waits_for = jobs_to_wait_for(jobs);
  std::optional<int> end;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const JobConfig& job = jobs[i];
    CheckedJob& one = checked.emplace_back();
    one.report.name = job.name;
    auto request = data::make_request(job);
    if (request) {
      request->device = options.device;
      one.report = session.runtime().check(*request);
    } else if (waits_for[i].empty()) {
      one.report.status = request.error();
    } else {
      one.waits = true;
    }
    if (one.report.status.ok()) continue;
    const std::string message = "job \"" + job.name + "\": " + one.report.status.message;
    const int status = session.refuse({job.place_of(job.op == "kernel" ? "source" : "op"), message});
    const bool no_device = one.report.device.id.empty() && one.report.status.code == StatusCode::unavailable;
    end = std::max(end.value_or(exit_done), no_device ? static_cast<int>(exit_no_device) : status);
  }
  if (session.config().cache.auto_save) (void)session.runtime().persist();
  return end;
}

}  // namespace

int config_check(const Options& options) {
  Session session(options);
  std::vector<CheckedJob> checked;
  // The plugins' own keys can only be checked with the plugins loaded; no driver is, but for --device.
  const auto end = options.device.empty() ? session.check() : check_on_device(session, options, checked);
  if (options.json) {
    const Json json{{"schema", 1},
                    {"problems", config_problems_json(session.problems())},
                    {"warnings", config_problems_json(session.warnings())},
                    {"jobs", checked_json(checked)}};
    return finish_json(json, options, end.value_or(exit_done));
  }
  if (end) return *end;
  const std::string file = options.sources.file.value_or("the configuration").string();
  std::string text;
  const auto line = [&](const std::string& what) { text += visible(file + ": " + what) + "\n"; };
  const std::size_t pipelines = session.config().pipelines.size();
  line("valid, " + counted(session.config().jobs.size(), "job") +
       (pipelines == 0 ? "" : ", " + counted(pipelines, "pipeline")));
  for (const auto& [report, waits] : checked) {
    const std::string who = "job " + report.name + ": ";
    line(who + (waits ? "not compiled: it reads what a job before it writes"
                      : "compiled for " + report.device.id + " (" + std::string(to_string(report.tier)) + ")"));
    for (const std::string& note : report.notes) line(who + note);
  }
  for (const auto& [plugin, section] : session.config().plugin) {
    if (section.empty() || session.plugin_keys().contains(plugin)) continue;
    line("[plugin." + plugin + "] was not checked: the plugin could not be loaded");
  }
  return finish(text, options);
}

int config_show(const Options& options) {
  Session session(options);
  if (const auto end = session.open_plugins()) return *end;
  const auto keys = session.plugin_keys();
  return finish(options.json ? show_config_json(session.config(), keys) : show_config(session.config(), keys), options);
}

}  // namespace kiln::host
