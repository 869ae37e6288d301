#include "console.hpp"
#include "exit_status.hpp"
#include "report/text_table.hpp"
#include "verbs/cache/cache_verb.hpp"
#include "verbs/verbs.hpp"

namespace kiln::host {
namespace {

Json outcome_json(const PersistOutcome& outcome) {
  Json json{{"schema", 1},
            {"stored", outcome.stored},
            {"bytes", outcome.bytes},
            {"already", outcome.already},
            {"pending", outcome.left},
            {"pruned", outcome.pruned}};
  json["bad"] = bad_json(outcome.bad);
  json["error"] = outcome.failure.ok() ? Json(nullptr) : Json(outcome.failure.message);
  return json;
}

std::string outcome_text(const PersistOutcome& outcome) {
  if (outcome.stored + outcome.already + outcome.left + outcome.bad.size() == 0) return "nothing is pending\n";
  std::string text = "stored " + counted(outcome.stored, "program") + ", " + human_size(outcome.bytes);
  if (outcome.already != 0) text += "; " + std::to_string(outcome.already) + " stored already";
  if (!outcome.bad.empty()) text += "; " + std::to_string(outcome.bad.size()) + " not sound, removed";
  if (outcome.pruned != 0) text += "; " + std::to_string(outcome.pruned) + " removed, because of max_disk";
  return text + "; " + std::to_string(outcome.left) + " pending\n";
}

}  // namespace

int cache_persist(const Options& options) {
  CacheConfig cache;
  if (const auto end = read_cache_config(options, cache)) return *end;
  const auto outcome = with_progress(options.progress, "stored", [&](const CacheProgress& progress) {
    return persist_cache(cache, options.subjects, progress);
  });
  if (!outcome) return complain_of(outcome.error());
  for (const BadEntry& bad : outcome->bad) {
    complain(visible("program " + short_key(bad.key) + " (" + bad.label + "): " + bad.reason + ": " + bad.why));
  }
  if (!outcome->failure.ok()) complain(visible(outcome->failure.message));
  const int status = outcome->failure.ok() && outcome->bad.empty() ? exit_done : exit_job_failed;
  return options.json ? finish_json(outcome_json(*outcome), options, status)
                      : finish(outcome_text(*outcome), options, status);
}

}  // namespace kiln::host
