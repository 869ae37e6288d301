// `kiln cache list`, `inspect`, `release`, `stats` and `explain`.
#include "console.hpp"
#include "text_table.hpp"
#include "verbs/cache_verb.hpp"
#include "verbs/verbs.hpp"

#include <algorithm>
#include <ctime>
#include <map>

namespace kiln::host {

Json cached_programs_json(const CacheInventory& stored) {
  Json programs = Json::array();
  for (const CachedProgram& program : stored.programs) {
    programs.push_back({{"key", program.key.hex()},
                        {"label", text_or_null(program.label)},
                        {"op", text_or_null(program.purpose.operation)},
                        {"shape", text_or_null(program.purpose.shape)},
                        {"variant", text_or_null(program.purpose.variant)},
                        {"folder", program.folder},
                        {"bytes", program.bytes},
                        {"build_ms", known(program.build_ms)},
                        {"first_dispatch_ms", known(program.first_dispatch_ms)},
                        {"gflops", known(program.gflops)},
                        {"times_used", program.times_used},
                        {"last_used", known(program.last_used_s)},
                        {"pending", program.pending}});
  }
  return programs;
}

namespace {

Json list_json(const CacheInventory& stored) {
  return {{"schema", 1}, {"programs", cached_programs_json(stored)}, {"aside", aside_json(stored.aside)}};
}

std::string figure(double value) { return value > 0 ? short_number(value) : "–"; }

std::string word(const std::string& text) { return text.empty() ? "–" : visible(text); }

std::string list_text(const CacheInventory& stored) {
  std::map<std::string, std::string> words;
  for (const CacheDevice& device : stored.devices) words[device.folder] = words_of(device);
  const bool one_device = stored.devices.size() <= 1;
  std::vector<TextTable::Column> columns{
      {"label", Align::left}, {"key", Align::left},       {"op", Align::left},        {"shape", Align::left},
      {"size", Align::right}, {"build ms", Align::right}, {"first ms", Align::right}, {"GFLOP/s", Align::right},
      {"used", Align::right}, {"last used", Align::right}};
  if (!one_device) columns.push_back({"device and driver", Align::left});
  TextTable table(std::move(columns));
  const std::int64_t now = std::time(nullptr);
  for (const CachedProgram& program : stored.programs) {
    std::string label = word(program.label);
    if (program.pending) label += " (pending)";
    std::vector<std::string> row{std::move(label),
                                 short_key(program.key),
                                 word(program.purpose.operation),
                                 word(program.purpose.shape),
                                 human_size(program.bytes),
                                 figure(program.build_ms),
                                 figure(program.first_dispatch_ms),
                                 figure(program.gflops),
                                 std::to_string(program.times_used),
                                 human_age(program.last_used_s, now)};
    if (!one_device) row.push_back(words.contains(program.folder) ? words[program.folder] : program.folder);
    table.add(std::move(row));
  }
  std::string text =
      table.text() + "\n" + counted(stored.programs_stored, "program") + ", " + human_size(stored.bytes_stored);
  if (stored.programs_pending != 0) {
    text += "; " + counted(stored.programs_pending, "program") + " pending, " + human_size(stored.bytes_pending);
  }
  if (one_device && !stored.devices.empty()) text += "; " + words_of(stored.devices.front());
  return text + "\n" + aside_text(stored.aside);
}

}  // namespace

int cache_list(const Options& options) {
  CacheConfig cache;
  if (const auto end = read_cache_config(options, cache)) return *end;
  const auto exists = cache_exists(cache);
  if (!exists) return complain_of(exists.error());
  const auto stored = cache_inventory(cache, Detail::programs);
  if (!stored) return complain_of(stored.error());
  if (!stored->unread.ok()) complain(visible(stored->unread.message));
  const int status = stored->unread.ok() ? exit_done : exit_job_failed;
  if (options.json) return finish_json(list_json(*stored), options, status);
  if (!*exists) return finish(no_cache_yet(cache), options);
  if (stored->programs.empty()) return finish("nothing is stored\n" + aside_text(stored->aside), options, status);
  return finish(list_text(*stored), options, status);
}

namespace {

Json inspection_json(const ProgramInspection& one) {
  const CachedProgram& program = one.program;
  Json json{{"schema", 1}, {"key", program.key.hex()}, {"label", text_or_null(program.label)}, {"path", one.path}};
  json["op"] = text_or_null(program.purpose.operation);
  json["shape"] = text_or_null(program.purpose.shape);
  json["variant"] = text_or_null(program.purpose.variant);
  json["pending"] = program.pending;
  json["verdict"] = one.verdict;
  json["why"] = text_or_null(one.why);
  json["device"] = {{"folder", one.device.folder},
                    {"device", text_or_null(one.device.device)},
                    {"kind", text_or_null(one.device.kind)},
                    {"driver", text_or_null(one.device.driver)}};
  json["entry"] = nullptr;
  if (one.schema != 0) {
    json["entry"] = {{"schema", one.schema},
                     {"compression", one.compression},
                     {"format", one.format},
                     {"signed_by", one.signed_by},
                     {"material_bytes", one.material_bytes},
                     {"stored_bytes", one.stored_bytes},
                     {"inflated_bytes", one.inflated_bytes},
                     {"build_ms", known(one.build_ms)}};
  }
  json["meta"] = {{"bytes", program.bytes},
                  {"build_ms", known(program.build_ms)},
                  {"first_dispatch_ms", known(program.first_dispatch_ms)},
                  {"gflops", known(program.gflops)},
                  {"times_used", program.times_used},
                  {"last_used", known(program.last_used_s)}};
  json["driver_files"] = Json::array();
  for (const CachedDriverFile& file : one.driver_files) {
    json["driver_files"].push_back({{"name", file.name}, {"bytes", file.bytes}});
  }
  json["fields"] = Json::array();
  for (const KeyFieldText& field : one.fields) json["fields"].push_back({{"name", field.name}, {"text", field.text}});
  return json;
}

std::string ms_or_unknown(double ms) { return ms > 0 ? human_ms(ms) : "not known"; }

std::string word_or_unknown(const std::string& text) { return text.empty() ? "not known" : visible(text); }

std::string inspection_text(const ProgramInspection& one) {
  const CachedProgram& program = one.program;
  TextTable table({{"label", Align::left}, {word_or_unknown(program.label), Align::left}});
  table.add({"key", program.key.hex()});
  table.add({"computes", word_or_unknown(program.purpose.operation) + ", " + word_or_unknown(program.purpose.shape)});
  table.add({"variant", word_or_unknown(program.purpose.variant)});
  table.add({"file", visible(one.path)});
  table.add({"verdict", one.why.empty() ? one.verdict : one.verdict + ": " + visible(one.why)});
  if (program.pending) table.add({"state", "pending: kiln cache persist stores the program"});
  table.add({"device", words_of(one.device)});
  if (one.schema != 0) {
    table.add({"format",
               visible(one.format) + ", schema " + std::to_string(one.schema) + ", signed by key " + one.signed_by});
    table.add({"payload", human_size(one.inflated_bytes) + ", stored as " + human_size(one.stored_bytes) + " (" +
                              one.compression + ")"});
  }
  if (!one.driver_files.empty()) {
    std::uint64_t bytes = 0;
    for (const CachedDriverFile& file : one.driver_files) bytes += file.bytes;
    table.add({"driver files", std::to_string(one.driver_files.size()) + ", " + human_size(bytes)});
  }
  table.add({"on disk", human_size(program.bytes)});
  table.add({"build", ms_or_unknown(program.build_ms > 0 ? program.build_ms : one.build_ms)});
  table.add({"first dispatch", ms_or_unknown(program.first_dispatch_ms)});
  table.add({"rate", program.gflops > 0 ? short_number(program.gflops) + " GFLOP/s" : "not known"});
  table.add(
      {"used", counted(program.times_used, "time") + ", last " + human_age(program.last_used_s, std::time(nullptr))});
  std::string text = table.text();
  if (one.fields.empty()) return text;
  TextTable fields({{"field of the key", Align::left}, {"", Align::left}});
  for (std::size_t at = 0; at < one.fields.size();) {
    const std::string& name = one.fields[at].name;
    std::string texts = in_short(one.fields[at].text);
    for (++at; at < one.fields.size() && one.fields[at].name == name; ++at)
      texts += ", " + in_short(one.fields[at].text);
    fields.add({visible(name), std::move(texts)});
  }
  return text + "\n" + fields.text();
}

}  // namespace

int cache_inspect(const Options& options) {
  CacheConfig cache;
  if (const auto end = read_cache_config(options, cache)) return *end;
  const auto one = inspect_program(cache, options.subject);
  if (!one) return complain_of(one.error());
  if (options.json) return finish_json(inspection_json(*one), options);
  return finish(inspection_text(*one), options);
}

int cache_release(const Options& options) {
  CacheConfig cache;
  if (const auto end = read_cache_config(options, cache)) return *end;
  const auto released = release_programs(cache, options.subject);
  if (!released) return complain_of(released.error());
  if (options.json) return finish_json({{"schema", 1}, {"released", aside_json(*released)}}, options);
  std::string text;
  for (const AsideProgram& one : *released) {
    text += "released " + short_key(one.key) + (one.label.empty() ? "" : " (" + visible(one.label) + ")") + "\n";
  }
  return finish(text, options);
}

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
  json["since"] = known(totals.since_s);
  json["updated"] = known(totals.updated_s);
  json["max_disk"] = cache.max_disk;
  json["programs"] = stored.programs_stored;
  json["pending"] = {{"programs", stored.programs_pending}, {"bytes", stored.bytes_pending}};
  json["devices"] = Json::array();
  for (const CacheDevice& one : stored.devices) {
    json["devices"].push_back({{"folder", one.folder},
                               {"device", text_or_null(one.device)},
                               {"kind", text_or_null(one.kind)},
                               {"driver", text_or_null(one.driver)},
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

// " (2 never stored, 1 evicted)"; empty where there is nothing to say.
std::string why_missing(const CacheStats& counts) {
  const std::pair<std::uint64_t, const char*> reasons[] = {
      {counts.absent, "never stored"}, {counts.evicted, "evicted"}, {counts.timed_out, "timed out"}};
  std::string text;
  for (const auto& [count, reason] : reasons) {
    if (count != 0) text += (text.empty() ? " (" : ", ") + std::to_string(count) + " " + reason;
  }
  return text.empty() ? text : text + ")";
}

std::string counts_table(const CacheTotals& totals) {
  const CacheStats& counts = totals.counts;
  const std::string title = totals.processes == 0 ? "no process has used the cache"
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
  text += stored.devices.empty() && stored.programs_pending == 0 ? "nothing is stored\n" : stored_table(stored);
  return text + "\n" + counts_table(totals);
}

}  // namespace

int cache_stats(const Options& options) {
  if (options.cache.prometheus && options.json) {
    return complain_of(invalid_argument("kiln cache stats: --prometheus and --json cannot be used together"));
  }
  CacheConfig cache;
  if (const auto end = read_cache_config(options, cache)) return *end;
  const auto exists = cache_exists(cache);
  if (!exists) return complain_of(exists.error());
  const auto stored = cache_inventory(cache, Detail::figures);
  if (!stored) return complain_of(stored.error());
  const auto totals = cache_totals(cache);
  if (!totals) return complain_of(totals.error());
  if (!stored->unread.ok()) complain(visible(stored->unread.message));
  const int status = stored->unread.ok() ? exit_done : exit_job_failed;
  if (options.cache.prometheus) return finish(cache_prometheus(*totals, *stored, cache), options, status);
  if (options.json) return finish_json(cache_stats_json(cache, *totals, *stored, *exists), options, status);
  return finish(*exists ? stats_text(cache, *totals, *stored) : no_cache_yet(cache), options, status);
}

namespace {

constexpr std::size_t most_shown = 48;

std::string named(const std::string& label, const Digest& key) {
  return (label.empty() ? "a program without a label" : visible(label)) + " (" + short_key(key) + ")";
}

std::string value_of(bool there, const std::string& text) {
  if (!there) return "–";
  return text.empty() ? "(empty)" : in_short(text, most_shown);
}

std::string explanation_text(const MissExplanation& miss) {
  std::string text =
      named(miss.label, miss.key) + ", missed " + human_age(miss.missed_s, std::time(nullptr)) + ": " + miss.reason;
  if (!miss.why.empty()) text += ": " + visible(miss.why);
  text += miss.stored_now ? "; it is stored now\n" : "; it is not stored\n";
  if (!miss.nearest) return text + "no other program was stored at that time, so there is nothing to compare\n";
  text += "nearest stored: " + named(miss.nearest->label, miss.nearest->key) + ", for " +
          words_of(miss.nearest_device) + "\n\n";
  TextTable table({{"field of the key", Align::left}, {"requested", Align::left}, {"stored", Align::left}});
  for (const KeyDifference& one : miss.differences) {
    std::string name = visible(one.name);
    if (one.line != 0) {
      name += ", line " + std::to_string(one.line) + " (" + counted(one.lines_differing, "line") + " in all)";
    }
    table.add({std::move(name), value_of(one.in_asked, one.asked), value_of(one.in_stored, one.stored)});
  }
  return text + table.text();
}

}  // namespace

int cache_explain(const Options& options) {
  CacheConfig cache;
  if (const auto end = read_cache_config(options, cache)) return *end;
  const auto misses = explain_misses(cache, options.subject);
  if (!misses) return complain_of(misses.error());
  if (options.json) return finish_json(parse_json(explanations_json(*misses)), options);
  std::string text;
  for (const MissExplanation& miss : *misses) text += (text.empty() ? "" : "\n") + explanation_text(miss);
  return finish(text, options);
}

}  // namespace kiln::host
