// `kiln selector show`: what has been learned, without opening a device.
#include "exit_status.hpp"
#include "report/human.hpp"
#include "report/text_table.hpp"
#include "session.hpp"
#include "verbs/cache/cache_verb.hpp"
#include "verbs/verbs.hpp"

#include <kiln/selector_admin.hpp>

#include <ctime>

namespace kiln::host {
namespace {

Json arm_json(const LearnedArm& arm) {
  return {{"operation", arm.operation},
          {"shape", arm.shape},
          {"device", arm.device},
          {"driver", arm.driver},
          {"runs", arm.runs},
          {"ms", arm.runs > 0 ? Json(to_ms(arm.run_ns)) : Json(nullptr)},
          {"deviation", arm.runs > 0 ? Json(arm.deviation) : Json(nullptr)},
          {"transfer_ms", to_ms(arm.transfer_ns)},
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
  json["rejected"] = Json::array();
  for (const RejectedRecord& record : model.rejected) {
    json["rejected"].push_back({{"line", record.line},
                                {"validator", record.validator},
                                {"expected", record.expected},
                                {"found", record.found}});
  }
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
                   {"of it transfer", Align::right},
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
  if (!reasons.empty()) text += "\nruns that were not learned from as steady ones: " + reasons + "\n";
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
