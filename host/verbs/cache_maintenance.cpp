// `kiln cache verify`, `prune`, `clear` and `persist`.
#include "console.hpp"
#include "text_table.hpp"
#include "verbs/cache_verb.hpp"
#include "verbs/verbs.hpp"

namespace kiln::host {
namespace {

Json verdict_json(const CacheVerdict& verdict) {
  Json json{{"schema", 1}, {"entries", verdict.entries}, {"ok", verdict.ok}};
  json["rejected"] = rejected_json(verdict.rejected);
  json["bad"] = bad_json(verdict.bad);
  json["aside"] = aside_json(verdict.aside);
  return json;
}

std::string verdict_text(const CacheVerdict& verdict) {
  std::string text;
  if (!verdict.bad.empty()) {
    TextTable table({{"label", Align::left},
                     {"key", Align::left},
                     {"verdict", Align::left},
                     {"removed", Align::left},
                     {"why", Align::left}});
    for (const BadEntry& one : verdict.bad) {
      table.add({one.label.empty() ? "–" : visible(one.label), short_key(one.key), one.reason,
                 one.removed ? "yes" : "no", visible(one.why)});
    }
    text = table.text() + "\n";
  }
  text += counted(verdict.entries, "program") + ", " + std::to_string(verdict.ok) + " valid";
  const std::string rejected = rejected_text(verdict.rejected);
  return text + (rejected.empty() ? "" : ", " + rejected) + "\n" + aside_text(verdict.aside);
}

}  // namespace

int cache_verify(const Options& options) {
  CacheConfig cache;
  if (const auto end = read_cache_config(options, cache)) return *end;
  const auto exists = cache_exists(cache);
  if (!exists) return complain_of(exists.error());
  const auto verdict = with_progress(options.progress, "verified", [&](const CacheProgress& progress) {
    return verify_cache(cache, options.cache.remove ? BadEntries::remove : BadEntries::keep, progress);
  });
  if (!verdict) return complain_of(verdict.error());
  if (!verdict->removal.ok()) complain(visible(verdict->removal.message));
  if (!verdict->unread.ok()) complain(visible(verdict->unread.message));
  const bool sound = verdict->ok == verdict->entries && verdict->unread.ok();
  const int status = sound ? exit_done : exit_job_failed;
  if (options.json) return finish_json(verdict_json(*verdict), options, status);
  return finish(*exists ? verdict_text(*verdict) : no_cache_yet(cache), options, status);
}

// `kiln cache prune` and `kiln cache clear`: what takes things away.

namespace {

Json removal_json(const CacheRemoval& removal) {
  return {{"schema", 1},
          {"programs", removal.programs},
          {"pending", removal.pending},
          {"bytes", removal.bytes},
          {"programs_left", removal.programs_left},
          {"bytes_left", removal.bytes_left},
          {"error", removal.failure.ok() ? Json(nullptr) : Json(removal.failure.message)}};
}

std::string removal_text(const CacheRemoval& removal, std::string_view word) {
  if (removal.programs + removal.pending + removal.bytes == 0) return std::string(word) + " nothing";
  std::string text = std::string(word) + " " + counted(removal.programs, "program");
  if (removal.pending != 0) text += ", " + std::to_string(removal.pending) + " pending";
  return text + ": " + human_size(removal.bytes);
}

int report_removal(const Result<CacheRemoval>& removal, const std::string& text, const Options& options) {
  if (!removal->failure.ok()) complain(visible(removal->failure.message));
  const int status = removal->failure.ok() ? exit_done : exit_job_failed;
  return options.json ? finish_json(removal_json(*removal), options, status) : finish(text, options, status);
}

}  // namespace

int cache_prune(const Options& options) {
  CacheConfig cache;
  if (const auto end = read_cache_config(options, cache)) return *end;
  PruneLimits limits{options.cache.max_age, options.cache.max_size};
  if (!limits.max_age && !limits.max_bytes) limits.max_bytes = cache.max_disk;
  const auto exists = cache_exists(cache);
  if (!exists) return complain_of(exists.error());
  const bool pretend = options.cache.dry_run;
  const auto removal = with_progress(options.progress, "looked at", [&](const CacheProgress& progress) {
    return prune_cache(cache, limits, pretend ? Removal::pretend : Removal::perform, progress);
  });
  if (!removal) return complain_of(removal.error());
  std::string text = removal_text(*removal, pretend ? "would remove" : "removed");
  text += "; " + counted(removal->programs_left, "program") + " left, " + human_size(removal->bytes_left) + " in all\n";
  return report_removal(removal, *exists ? text : no_cache_yet(cache), options);
}

int cache_clear(const Options& options) {
  CacheConfig cache;
  if (const auto end = read_cache_config(options, cache)) return *end;
  const auto exists = cache_exists(cache);
  if (!exists) return complain_of(exists.error());
  const auto removal = clear_cache(cache, options.cache.all ? ClearScope::everything : ClearScope::programs);
  if (!removal) return complain_of(removal.error());
  return report_removal(removal, *exists ? removal_text(*removal, "removed") + "\n" : no_cache_yet(cache), options);
}

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
  if (outcome.already != 0) text += "; " + std::to_string(outcome.already) + " already stored";
  if (!outcome.bad.empty()) text += "; " + std::to_string(outcome.bad.size()) + " invalid, removed";
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
