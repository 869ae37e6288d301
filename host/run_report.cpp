#include "run_report.hpp"

#include "text_table.hpp"

#include <kiln/run_request.hpp>
#include <kiln/version.hpp>

#include <kiln_json.hpp>

#include <cmath>
#include <cstdio>

namespace kiln::host {
namespace {

double ms(std::uint64_t ns) { return static_cast<double>(ns) / 1e6; }

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

namespace {

std::string ms_text(std::uint64_t ns) { return short_number(static_cast<double>(ns) / 1e6); }

std::string verified_text(const RunReport& report) {
  if (!report.verified) return "–";
  return *report.verified ? "yes" : "NO";
}

std::string painted(const std::string& text, const char* code, Colour colour) {
  return colour == Colour::yes ? "\033[" + std::string(code) + "m" + text + "\033[0m" : text;
}

double kib(std::uint64_t bytes) { return static_cast<double>(bytes) / 1024; }

// Below its pipeline; "run ms" is the device time of all rounds.
void add_step(TextTable& table, const StepReport& step) {
  const double rate = gflops(step.flops * static_cast<double>(step.rounds), step.device_ns);
  char error[48] = "";
  if (step.verified) std::snprintf(error, sizeof error, "%.1e/%.1e", step.max_rel_error, step.error_bound);
  table.add({"  " + step.name + (step.rounds == 1 ? "" : " x" + std::to_string(step.rounds)), "",
             std::string(to_string(step.tier)), ms_text(step.build_ns), "",
             step.device_ns == 0 ? "–" : ms_text(step.device_ns), rate > 0 ? short_number(rate) : "–",
             step.verified ? (*step.verified ? "yes" : "NO") : "–", error});
}

}  // namespace

std::string run_table(const RunOutcome& outcome, Colour colour) {
  TextTable table({{"job", Align::left},
                   {"device", Align::left},
                   {"tier", Align::left},
                   {"build ms", Align::right},
                   {"first ms", Align::right},
                   {"run ms", Align::right},
                   {"GFLOP/s", Align::right},
                   {"verified", Align::left},
                   {"error/bound", Align::left}});
  std::string below;
  for (const JobOutcome& job : outcome.jobs) {
    const RunReport& report = job.report;
    const bool ok = report.status.ok();
    const double rate = gflops(report.flops, report.median.wall_ns);
    char error[48] = "";
    if (report.verified) std::snprintf(error, sizeof error, "%.1e/%.1e", report.max_rel_error, report.error_bound);
    table.add({report.name, report.device.id.empty() ? "–" : report.device.id,
               report.tier == Tier::invalid ? "–" : std::string(to_string(report.tier)),
               ok ? ms_text(report.build_ns) : "–", ok ? short_number(job.first_result_ms) : "–",
               ok ? ms_text(report.median.wall_ns) : "–", ok && rate > 0 ? short_number(rate) : "–",
               verified_text(report), error});
    for (const StepReport& step : report.steps) add_step(table, step);
    if (ok && !report.steps.empty()) {
      below += "memory  " + visible(report.name) + ": intermediates " + short_number(kib(report.intermediate_bytes)) +
               " KiB, needed at one time " + short_number(kib(report.live_bytes)) + " KiB\n";
    }
    if (!ok) {
      below += painted("failed", "31", colour) + "  " + visible(report.name) + ": " +
               visible_lines(report.status.message) + "\n";
    }
    for (const std::string& note : report.notes) {
      if (!ok && report.status.message.find(note) != std::string::npos) continue;  // the error says it
      below += "note    " + visible(report.name) + ": " + visible(note) + "\n";
    }
  }
  std::string text = table.text() + below;
  const CacheStats& cache = outcome.cache;
  const auto more = [](std::uint64_t count, const char* what) {
    return count == 0 ? "" : ", " + std::to_string(count) + what;
  };
  const std::string failed = more(cache.failed_builds, " failed");
  const std::string shared = more(cache.shared.layer_hits, " from layers") + more(cache.shared.hits, " from remotes");
  char line[320];
  std::snprintf(
      line, sizeof line,
      "programs: %llu built%s, %llu from disk, %llu from memory%s, %llu prepared · driver's cache: %s · saved %.0f ms\n"
      "jobs: %zu in %s ms\n",
      static_cast<unsigned long long>(cache.builds), failed.c_str(), static_cast<unsigned long long>(cache.disk_hits),
      static_cast<unsigned long long>(cache.memory_hits), shared.c_str(),
      static_cast<unsigned long long>(outcome.prepared), driver_cache_of(outcome.jobs).c_str(),
      std::round(cache.saved_ms) + 0.0,  // no "-0"
      outcome.jobs.size(), ms_text(outcome.total_ns).c_str());
  return text + line;
}

}  // namespace kiln::host
