#include "exit_status.hpp"
#include "report/text_table.hpp"
#include "verbs/cache/cache_verb.hpp"
#include "verbs/verbs.hpp"

#include <ctime>
#include <map>

namespace kiln::host {

Json cached_programs_json(const CacheInventory& stored) {
  Json programs = Json::array();
  for (const CachedProgram& program : stored.programs) {
    programs.push_back({{"key", program.key.hex()},
                        {"label", program.label},
                        {"op", program.purpose.operation},
                        {"shape", program.purpose.shape},
                        {"variant", program.purpose.variant},
                        {"folder", program.folder},
                        {"bytes", program.bytes},
                        {"build_ms", program.build_ms},
                        {"first_dispatch_ms", program.first_dispatch_ms},
                        {"gflops", program.gflops},
                        {"times_used", program.times_used},
                        {"last_used", program.last_used_s},
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
  if (options.json) return finish_json(list_json(*stored), options);
  if (!*exists) return finish(no_cache_yet(cache), options);
  if (stored->programs.empty()) return finish("nothing is stored\n" + aside_text(stored->aside), options);
  return finish(list_text(*stored), options);
}

}  // namespace kiln::host
