#include "console.hpp"
#include "exit_status.hpp"
#include "report/text_table.hpp"
#include "verbs/cache/cache_verb.hpp"
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
  text += counted(verdict.entries, "program") + ", " + std::to_string(verdict.ok) + " sound";
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
  const int status = verdict->ok == verdict->entries ? exit_done : exit_job_failed;
  if (options.json) return finish_json(verdict_json(*verdict), options, status);
  return finish(*exists ? verdict_text(*verdict) : no_cache_yet(cache), options, status);
}

}  // namespace kiln::host
