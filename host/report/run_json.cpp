#include "report/run_report.hpp"

#include "report/text_table.hpp"

#include <kiln/run_request.hpp>
#include <kiln/version.hpp>
#include <kiln_json.hpp>

namespace kiln::host {
namespace {

double ms(std::uint64_t ns) { return static_cast<double>(ns) / 1e6; }

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

}  // namespace

std::string driver_cache_of(const std::vector<JobOutcome>& jobs) {
  for (const JobOutcome& job : jobs) {
    const std::string& state = job.report.device.driver_cache;
    if (!job.report.device.id.empty() && state != "none") return state;
  }
  return "none";
}

std::string run_json(const RunOutcome& outcome) {
  Json json;
  json["schema"] = 1;
  json["kiln"] = version;
  json["jobs"] = Json::array();
  for (const JobOutcome& job : outcome.jobs) {
    json["jobs"].push_back(parse_json(report_json(job.report, job.first_result_ms, job.output)));
  }
  json["total_ms"] = ms(outcome.total_ns);
  json["setup_ms"] = ms(outcome.setup_ns);
  const RejectedCounts& rejected = outcome.cache.rejected;
  json["cache"] = {
      {"memory_hits", outcome.cache.memory_hits},
      {"disk_hits", outcome.cache.disk_hits},
      {"misses", outcome.cache.misses},
      {"builds", outcome.cache.builds},
      {"failed_builds", outcome.cache.failed_builds},
      {"prepared", outcome.prepared},
      {"driver_cache", driver_cache_of(outcome.jobs)},
      {"missing",
       {{"absent", outcome.cache.absent}, {"evicted", outcome.cache.evicted}, {"timed_out", outcome.cache.timed_out}}},
      {"rejected",
       {{"corrupt", rejected.corrupt},
        {"tampered", rejected.tampered},
        {"foreign", rejected.foreign},
        {"driver_changed", rejected.driver_changed},
        {"refused", rejected.refused},
        {"quarantined", rejected.quarantined}}},
      {"bytes_on_disk", outcome.cache.bytes_on_disk},
      {"saved_ms", outcome.cache.saved_ms}};
  for (const auto& [name, value] : shared_count_names()) json["cache"]["shared"][name] = outcome.cache.shared.*value;
  const WarmingState& warming = outcome.warming;
  json["warming"] = {{"running", warming.running}, {"done", warming.done},   {"of", warming.of},
                     {"linked", warming.linked},   {"ready", warming.ready}, {"built", warming.built},
                     {"failed", warming.failed}};
  json["devices"] = Json::array();
  for (const DeviceInfo& device : outcome.devices) {
    json["devices"].push_back(
        {{"id", device.id}, {"usable", device.usable}, {"why_not", text_or_null(device.why_not)}});
  }
  json["plugins"] = Json::array();
  for (const PluginReport& plugin : outcome.plugins) {
    json["plugins"].push_back(
        {{"name", plugin.name}, {"loaded", plugin.loaded}, {"why_not", text_or_null(plugin.why_not.message)}});
  }
  json["interrupted"] = outcome.interrupted;
  json["problems"] = config_problems_json(outcome.problems);
  return json_text(json, 2) + "\n";
}

}  // namespace kiln::host
