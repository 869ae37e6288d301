#include "exit_status.hpp"
#include "report/text_table.hpp"
#include "verbs/cache/cache_verb.hpp"
#include "verbs/verbs.hpp"

namespace kiln::host {
Json cache_stats_json(const CacheConfig& cache, const CacheTotals& totals, const CacheInventory& stored, bool exists) {
  const CacheStats& counts = totals.counts;
  Json json{{"schema", 1}, {"directory", cache.directory.string()}, {"exists", exists}};
  json["memory_hits"] = counts.memory_hits;
  json["disk_hits"] = counts.disk_hits;
  json["misses"] = counts.misses;
  json["builds"] = counts.builds;
  json["failed_builds"] = counts.failed_builds;
  json["prepared"] = counts.prepared;
  json["missing"] = {{"absent", counts.absent}, {"evicted", counts.evicted}, {"timed_out", counts.timed_out}};
  json["rejected"] = rejected_json(counts.rejected);
  json["bytes_on_disk"] = stored.bytes_stored;
  json["saved_ms"] = counts.saved_ms;
  json["waits"] = counts.waits;
  json["evictions"] = counts.evictions;
  json["disk_evictions"] = counts.disk_evictions;
  json["lease_waits"] = counts.lease_waits;
  json["lease_wait_ms"] = to_ms(static_cast<double>(counts.lease_wait_ns));
  json["lease_takeovers"] = counts.lease_takeovers;
  json["lease_timeouts"] = counts.lease_timeouts;
  json["shared"] = shared_json(counts.shared);
  json["negative_hits"] = counts.negative_hits;
  json["processes"] = totals.processes;
  json["since"] = totals.since_s;
  json["updated"] = totals.updated_s;
  json["max_disk"] = cache.max_disk;
  json["programs"] = stored.programs_stored;
  json["pending"] = {{"programs", stored.programs_pending}, {"bytes", stored.bytes_pending}};
  json["devices"] = Json::array();
  for (const CacheDevice& one : stored.devices) {
    json["devices"].push_back({{"folder", one.folder},
                               {"device", one.device},
                               {"kind", one.kind},
                               {"driver", one.driver},
                               {"programs", one.programs},
                               {"bytes", one.bytes}});
  }
  return json;
}

namespace {

std::string stored_table(const CacheInventory& stored) {
  TextTable table({{"stored", Align::left}, {"programs", Align::right}, {"size", Align::right}});
  for (const CacheDevice& device : stored.devices) {
    table.add({words_of(device), std::to_string(device.programs), human_size(device.bytes)});
  }
  if (stored.programs_pending != 0) {
    table.add(
        {"waiting for kiln cache persist", std::to_string(stored.programs_pending), human_size(stored.bytes_pending)});
  }
  return table.text();
}

// " (2 never there, 1 evicted before)"; empty where there is nothing to say.
std::string why_missing(const CacheStats& counts) {
  const std::pair<std::uint64_t, const char*> reasons[] = {
      {counts.absent, "never there"}, {counts.evicted, "evicted before"}, {counts.timed_out, "waited for too long"}};
  std::string text;
  for (const auto& [count, reason] : reasons) {
    if (count != 0) text += (text.empty() ? " (" : ", ") + std::to_string(count) + " " + reason;
  }
  return text.empty() ? text : text + ")";
}

std::string counts_table(const CacheTotals& totals) {
  const CacheStats& counts = totals.counts;
  const std::string title = totals.processes == 0 ? "no process has used it"
                                                  : std::to_string(totals.processes) +
                                                        (totals.processes == 1 ? " process" : " processes") +
                                                        " since " + human_date(totals.since_s);
  TextTable table({{title, Align::left}, {"", Align::right}});
  const auto add = [&](const char* what, const std::string& figure) { table.add({what, figure}); };
  add("found in memory", std::to_string(counts.memory_hits));
  add("found on disk", std::to_string(counts.disk_hits));
  if (counts.shared.layer_hits != 0) add("found in a layer", std::to_string(counts.shared.layer_hits));
  if (counts.shared.hits != 0) add("found in a remote", std::to_string(counts.shared.hits));
  add("not found", std::to_string(counts.misses) + why_missing(counts));
  add("built", std::to_string(counts.builds));
  add("builds that failed", std::to_string(counts.failed_builds));
  add("prepared (not stored)", std::to_string(counts.prepared));
  add("waited for another thread", std::to_string(counts.waits));
  add("waited for another process",
      counts.lease_waits == 0
          ? "0"
          : std::to_string(counts.lease_waits) + ", " + human_ms(to_ms(static_cast<double>(counts.lease_wait_ns))));
  add("built after another process stopped", std::to_string(counts.lease_takeovers));
  add("built because another process was slow", std::to_string(counts.lease_timeouts));
  add("refused again without compiling", std::to_string(counts.negative_hits));
  add("evicted from memory", std::to_string(counts.evictions));
  add("evicted from disk", std::to_string(counts.disk_evictions));
  add("build time saved", human_ms(counts.saved_ms));
  const std::string rejected = rejected_text(counts.rejected);
  add("rejected", rejected.empty() ? "0" : rejected);
  return table.text();
}

std::string stats_text(const CacheConfig& cache, const CacheTotals& totals, const CacheInventory& stored) {
  std::string text = visible(cache.directory.string()) + ", at most " + human_size(cache.max_disk) + " of programs\n\n";
  text += stored.devices.empty() ? "nothing is stored\n" : stored_table(stored);
  return text + "\n" + counts_table(totals);
}

}  // namespace

int cache_stats(const Options& options) {
  CacheConfig cache;
  if (const auto end = read_cache_config(options, cache)) return *end;
  const auto exists = cache_exists(cache);
  if (!exists) return complain_of(exists.error());
  const auto stored = cache_inventory(cache, Detail::figures);
  if (!stored) return complain_of(stored.error());
  const auto totals = cache_totals(cache);
  if (!totals) return complain_of(totals.error());
  if (options.cache.prometheus) return finish(cache_prometheus(*totals, *stored, cache), options);
  if (options.json) return finish_json(cache_stats_json(cache, *totals, *stored, *exists), options);
  return finish(*exists ? stats_text(cache, *totals, *stored) : no_cache_yet(cache), options);
}

}  // namespace kiln::host
