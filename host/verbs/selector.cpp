// `kiln selector`: explain a choice, judge other policies, reset and show what was learned.
#include "console.hpp"
#include "session.hpp"
#include "text_table.hpp"
#include "verb_table.hpp"
#include "verbs/cache_verb.hpp"
#include "verbs/verbs.hpp"

#include <kiln/cache_admin.hpp>
#include <kiln/config_reader.hpp>
#include <kiln/data.hpp>
#include <kiln/selector_admin.hpp>

#include <algorithm>
#include <cmath>
#include <ctime>

namespace kiln::host {
namespace {

Json rejected_json(const std::vector<RejectedRecord>& rejected) {
  Json json = Json::array();
  for (const RejectedRecord& record : rejected) {
    json.push_back({{"line", record.line},
                    {"validator", record.validator},
                    {"expected", record.expected},
                    {"found", record.found}});
  }
  return json;
}

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
  if (session.config().jobs.empty() && session.config().pipelines.empty()) {
    complain(options.sources.file.value_or("the configuration").string() +
             ": no [[job]] and no [[pipeline]]: nothing to explain");
    return exit_usage;
  }
  if (const auto end = session.check_devices()) return *end;
  session.runtime().open_ahead("auto");
  Json jobs = Json::array();
  std::string text;
  int status = exit_done;
  const auto explain = [&](const std::string& name, const std::string& what, auto request) {
    if (!request) {
      complain(visible(what + " '" + name + "': " + request.error().message));
      status = std::max<int>(status, exit_job_failed);
      return;
    }
    if (!options.device.empty()) request->device = options.device;
    request->repeat = options.repeat.value_or(1);
    const auto explanation = session.runtime().explain(*request);
    if (!explanation) {
      complain(visible(what + " '" + name + "': " + explanation.error().message));
      const bool no_device = explanation.error().code == StatusCode::unavailable;
      status = std::max<int>(status, no_device ? exit_no_device : exit_job_failed);
      return;
    }
    jobs.push_back(job_json(name, *explanation));
    text += (text.empty() ? "" : "\n") + job_text(name, *explanation);
  };
  for (const JobConfig& job : session.config().jobs) explain(job.name, "job", data::make_request(job));
  for (const PipelineConfig& pipeline : session.config().pipelines) {
    explain(pipeline.job.name, "pipeline", data::make_request(pipeline, data::Contents::check));
  }
  return options.json ? finish_json({{"schema", 1}, {"jobs", jobs}}, options, status) : finish(text, options, status);
}

namespace {

constexpr std::string_view replay_options = "set json output cache-dir log help version";

constexpr VerbHelp selector_table[] = {
    {"selector show", selector_show, Argument::config_or_none, "[CONFIG]", "show what the selector has learned",
     R"(Lists the measurements for each operation, device, driver and kind of shape: runs, expected time with its spread, share of data
transfer, first runs, exploration runs, and detected changes of the device. Then lists the runs that were not learned from, by
reason, and the records that were rejected. Opens no device. --device ID shows that device only.)",
     "set device json output cache-dir log help version"},
    {"selector explain", selector_explain, Argument::config, "CONFIG", "show why a device would be chosen",
     R"(Shows for each job and pipeline of CONFIG which device would run it now, why, and the expected cost of each candidate: queue wait,
transfer, build, run, with the evidence and its uncertainty. Opens the devices, runs nothing, changes nothing. Needs [selector] name
= "learning".)",
     "set device repeat json output plugin-path cache-dir log progress help version"},
    {"selector reset", selector_reset, Argument::config_or_none, "[CONFIG]", "remove what was learned",
     R"(Removes the measurements of every device, or of --device ID, and the rejected records. A running process only adds what it learns
afterwards. `kiln cache clear --all` also removes recorded decisions.)",
     "set device json output cache-dir log help version"},
    {"selector replay", selector_replay, Argument::subject_or_none, "[LOG]",
     "judge other policies on recorded decisions",
     R"(LOG is a file that [selector] log = true recorded, or its folder; default is the cache folder. Prints the estimated time of a
decision under each policy, with the range of 95 % of resamples (doubly robust estimate). The estimate assumes that the policy has
the same knowledge, and that a choice does not change later ones. `first` always takes the first device, unless it is far too slow.)",
     replay_options},
};

}  // namespace

std::span<const VerbHelp> selector_verbs() noexcept { return selector_table; }

// `kiln selector replay`: how other policies would have fared on recorded decisions.
namespace {

Json replay_json(const SelectorReplay& replay) {
  Json json{{"schema", 1},
            {"decisions", replay.decisions},
            {"judged", replay.judged},
            {"looks", replay.looks},
            {"without_outcome", replay.without_outcome},
            {"recorded_ms", to_ms(replay.recorded_mean_ns)},
            {"policies", Json::array()}};
  for (const PolicyVerdict& verdict : replay.policies) {
    json["policies"].push_back({{"policy", verdict.policy},
                                {"ms", to_ms(verdict.mean_ns)},
                                {"low_ms", to_ms(verdict.low_ns)},
                                {"high_ms", to_ms(verdict.high_ns)},
                                {"agreement", verdict.agreement}});
  }
  json["rejected"] = rejected_json(replay.rejected);
  return json;
}

std::string replay_text(const SelectorReplay& replay) {
  std::string text = counted(replay.decisions, "decision") + " recorded: " + std::to_string(replay.judged) +
                     " judged, " + std::to_string(replay.looks) + " looks, " + std::to_string(replay.without_outcome) +
                     " without an outcome or a choice\n";
  if (replay.judged == 0) return text + "no recorded decision can be used to compare policies\n";
  text += "the recorded choices took " + human_ms(to_ms(replay.recorded_mean_ns)) + " per decision\n\n";
  TextTable table({{"policy", Align::left},
                   {"ms per decision", Align::right},
                   {"95 % from", Align::right},
                   {"to", Align::right},
                   {"agrees with the log", Align::right}});
  for (const PolicyVerdict& verdict : replay.policies) {
    table.add({verdict.policy, short_number(to_ms(verdict.mean_ns)), short_number(to_ms(verdict.low_ns)),
               short_number(to_ms(verdict.high_ns)), short_number(100 * verdict.agreement) + " %"});
  }
  text += table.text();
  for (const RejectedRecord& record : replay.rejected) text += "skipped: " + visible(record.text()) + "\n";
  return text;
}

}  // namespace

int selector_replay(const Options& options) {
  ConfigReading reading = read_config(options.sources);
  if (!report_reading(reading)) return exit_usage;
  const std::filesystem::path log =
      options.subject.empty() ? reading.config.cache.directory : std::filesystem::path(options.subject);
  if (log.empty()) return complain_of(no_cache_folder());
  const auto replay = replay_selector_log(log, reading.config.selector);
  if (!replay) return complain_of(replay.error());
  return options.json ? finish_json(replay_json(*replay), options) : finish(replay_text(*replay), options);
}

// `kiln selector reset`: what was learned goes, of one device or of all.

int selector_reset(const Options& options) {
  CacheConfig cache;
  if (const auto end = read_cache_config(options, cache)) return *end;
  if (cache.read_only) {
    complain("cache.read_only = true: nothing is removed from " + visible(cache.directory.string()));
    return exit_usage;
  }
  const auto reset = reset_selector_model(cache.directory, options.device);
  if (!reset) return complain_of(reset.error());
  if (!options.device.empty() && reset->removed == 0) {  // nothing was learned of it: is there such a device?
    Session session(options);
    if (const auto end = session.open_runtime(MissingPlugins::pass)) return *end;
    if (const auto end = session.check_devices()) return *end;
  }
  if (options.json) {
    return finish_json({{"schema", 1}, {"removed", reset->removed}, {"kept", reset->kept}}, options);
  }
  return finish(counted(reset->removed, "record") + " removed, " + std::to_string(reset->kept) + " kept\n", options,
                exit_done);
}

// `kiln selector show`: what has been learned, without opening a device.
namespace {

Json arm_json(const LearnedArm& arm) {
  return {{"operation", arm.operation},
          {"shape", arm.shape},
          {"device", arm.device},
          {"driver", arm.driver},
          {"runs", arm.runs},
          {"ms", arm.runs > 0 ? Json(to_ms(arm.run_ns)) : Json(nullptr)},
          {"deviation", arm.runs > 0 ? Json(arm.deviation) : Json(nullptr)},
          {"transfer_ms", arm.runs > 0 ? Json(to_ms(arm.transfer_ns)) : Json(nullptr)},
          {"first_runs", arm.first_runs},
          {"first_ms", arm.first_runs > 0 ? Json(to_ms(arm.first_ns)) : Json(nullptr)},
          {"looks", arm.looks},
          {"changes", arm.alarms},
          {"used", arm.used_us / 1'000'000}};
}

std::string model_json(const SelectorModel& model) {
  Json json{{"schema", 1}, {"file", model.file.string()}, {"exists", model.exists}};
  json["arms"] = Json::array();
  for (const LearnedArm& arm : model.arms) json["arms"].push_back(arm_json(arm));
  json["not_learned"] = Json::object();
  for (const auto& [reason, count] : model.not_learned) json["not_learned"][reason] = count;
  json["rejected"] = rejected_json(model.rejected);
  return json_text(json, 2) + "\n";
}

std::string model_text(const SelectorModel& model) {
  if (!model.exists) return "nothing was learned yet: no file " + visible(model.file.string()) + "\n";
  TextTable table({{"operation", Align::left},
                   {"shape", Align::left},
                   {"device", Align::left},
                   {"driver", Align::left},
                   {"runs", Align::right},
                   {"ms", Align::right},
                   {"± %", Align::right},
                   {"transfer ms", Align::right},
                   {"first runs", Align::right},
                   {"ms", Align::right},
                   {"looks", Align::right},
                   {"changes", Align::right},
                   {"last used", Align::left}});
  const std::int64_t now = std::time(nullptr);
  for (const LearnedArm& arm : model.arms) {
    const bool ran = arm.runs > 0;
    table.add({visible(arm.operation), visible(arm.shape), visible(arm.device), visible(arm.driver),
               std::to_string(arm.runs), ran ? short_number(to_ms(arm.run_ns)) : "–",
               ran ? short_number(100 * arm.deviation) : "–", ran ? short_number(to_ms(arm.transfer_ns)) : "–",
               std::to_string(arm.first_runs), arm.first_runs > 0 ? short_number(to_ms(arm.first_ns)) : "–",
               std::to_string(arm.looks), std::to_string(arm.alarms),
               human_age(static_cast<std::int64_t>(arm.used_us / 1'000'000), now)});
  }
  std::string text = table.text();
  std::string reasons;
  for (const auto& [reason, count] : model.not_learned) {
    reasons += (reasons.empty() ? "" : ", ") + std::to_string(count) + " " + visible(reason);
  }
  if (!reasons.empty()) text += "\nruns that the estimates do not use: " + reasons + "\n";
  if (!model.rejected.empty()) text += "\nrecords that were refused:\n";
  for (const RejectedRecord& record : model.rejected) text += "  " + visible(record.text()) + "\n";
  return text;
}

}  // namespace

int selector_show(const Options& options) {
  CacheConfig cache;
  if (const auto end = read_cache_config(options, cache)) return *end;
  auto model = read_selector_model(cache.directory);
  if (!model) return complain_of(model.error());
  if (!options.device.empty()) {
    std::erase_if(model->arms, [&](const LearnedArm& arm) { return arm.device != options.device; });
    // What was learned of a device that is gone can be shown; of a device that never was there is nothing.
    if (model->arms.empty()) {
      Session session(options);
      if (const auto end = session.open_runtime(MissingPlugins::pass)) return *end;
      if (const auto end = session.check_devices()) return *end;
    }
  }
  return finish(options.json ? model_json(*model) : model_text(*model), options);
}

}  // namespace kiln::host
