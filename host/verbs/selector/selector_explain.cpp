// `kiln selector explain`: which device would serve each job of a file now, and the numbers behind it.
#include "exit_status.hpp"
#include "report/human.hpp"
#include "session.hpp"
#include "verbs/cache/cache_verb.hpp"
#include "data/job_request.hpp"
#include "verbs/verbs.hpp"

#include <cmath>

namespace kiln::host {
namespace {

// A figure that is not known is null.
Json json_ms(double ns) { return std::isfinite(ns) ? Json(ns / 1e6) : Json(nullptr); }

Json job_json(const std::string& name, const Explanation& explanation) {
  Json json{{"name", name},
            {"bucket", explanation.bucket},
            {"because", explanation.choice.because},
            {"candidates", Json::array()},
            {"words", explanation.words}};
  const auto id = [&](std::size_t candidate) {
    return candidate < explanation.candidates.size() ? Json(explanation.candidates[candidate].device) : Json(nullptr);
  };
  json["device"] = id(explanation.choice.candidate);
  json["build_ahead"] = explanation.choice.build_ahead ? id(*explanation.choice.build_ahead) : Json(nullptr);
  for (const CandidateCost& cost : explanation.candidates) {
    json["candidates"].push_back({{"device", cost.device},
                                  {"evidence", cost.evidence},
                                  {"runs", cost.runs},
                                  {"looks", cost.looks},
                                  {"cold", cost.cold},
                                  {"ms",
                                   {{"queue", json_ms(cost.queue_ns)},
                                    {"transfer", json_ms(cost.transfer_ns)},
                                    {"build", json_ms(cost.build_ns)},
                                    {"run", json_ms(cost.run_ns)},
                                    {"cost", json_ms(cost.cost_ns)}}},
                                  {"deviation", std::isfinite(cost.deviation) ? Json(cost.deviation) : Json(nullptr)}});
  }
  return json;
}

std::string job_text(const std::string& name, const Explanation& explanation) {
  std::string text = visible(name) + " (" + visible(explanation.bucket) + ")\n";
  for (const std::string& words : explanation.words) text += "  " + visible(words) + "\n";
  return text;
}

}  // namespace

int selector_explain(const Options& options) {
  Session session(options);
  if (const auto end = session.open_runtime(MissingPlugins::end, JobFiles::check)) return *end;
  if (session.config().jobs.empty()) {
    complain(options.sources.file.value_or("the configuration").string() + ": no [[job]]: nothing to explain");
    return exit_usage;
  }
  if (const auto end = session.check_devices()) return *end;
  session.runtime().open_ahead("auto");
  Json jobs = Json::array();
  std::string text;
  int status = exit_done;
  for (const JobConfig& job : session.config().jobs) {
    auto request = data::make_request(job);
    if (!request) {
      complain(visible("job '" + job.name + "': " + request.error().message));
      status = exit_job_failed;
      continue;
    }
    if (!options.device.empty()) request->device = options.device;
    request->repeat = options.repeat.value_or(1);
    const auto explanation = session.runtime().explain(*request);
    if (!explanation) {
      complain(visible("job '" + job.name + "': " + explanation.error().message));
      status = explanation.error().code == StatusCode::unavailable ? exit_no_device : exit_job_failed;
      continue;
    }
    jobs.push_back(job_json(job.name, *explanation));
    text += (text.empty() ? "" : "\n") + job_text(job.name, *explanation);
  }
  return options.json ? finish_json({{"schema", 1}, {"jobs", jobs}}, options, status) : finish(text, options, status);
}

}  // namespace kiln::host
