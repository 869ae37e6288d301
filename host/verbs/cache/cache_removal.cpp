// `kiln cache prune` and `kiln cache clear`: what takes things away.
#include "console.hpp"
#include "exit_status.hpp"
#include "report/text_table.hpp"
#include "verbs/cache/cache_verb.hpp"
#include "verbs/verbs.hpp"

namespace kiln::host {
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

int report(const Result<CacheRemoval>& removal, const std::string& text, const Options& options) {
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
  return report(removal, *exists ? text : no_cache_yet(cache), options);
}

int cache_clear(const Options& options) {
  CacheConfig cache;
  if (const auto end = read_cache_config(options, cache)) return *end;
  const auto exists = cache_exists(cache);
  if (!exists) return complain_of(exists.error());
  const auto removal = clear_cache(cache, options.cache.all ? ClearScope::everything : ClearScope::programs);
  if (!removal) return complain_of(removal.error());
  return report(removal, *exists ? removal_text(*removal, "removed") + "\n" : no_cache_yet(cache), options);
}

}  // namespace kiln::host
