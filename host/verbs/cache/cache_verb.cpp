#include "verbs/cache/cache_verb.hpp"

#include "console.hpp"
#include "exit_status.hpp"
#include "report/text_table.hpp"

#include <kiln/config_reader.hpp>

#include <algorithm>

namespace kiln::host {

std::optional<int> read_cache_config(const Options& options, CacheConfig& cache) {
  ConfigReading reading = read_config(options.sources);
  if (!report_reading(reading)) return exit_usage;
  cache = std::move(reading.config.cache);
  if (!cache.directory.empty()) return std::nullopt;
  complain(no_cache_folder().message);
  return exit_usage;
}

std::string no_cache_yet(const CacheConfig& cache) {
  return "there is no cache at " + visible(cache.directory.string()) + " yet\n";
}

Json rejected_json(const RejectedCounts& rejected) {
  return {{"corrupt", rejected.corrupt}, {"tampered", rejected.tampered},
          {"foreign", rejected.foreign}, {"driver_changed", rejected.driver_changed},
          {"refused", rejected.refused}, {"quarantined", rejected.quarantined}};
}

Json shared_json(const SharedCounts& counts) {
  Json json = Json::object();
  for (const auto& [name, value] : shared_count_names()) json[name] = counts.*value;
  return json;
}

Json bad_json(const std::vector<BadEntry>& bad) {
  Json json = Json::array();
  for (const BadEntry& one : bad) {
    json.push_back({{"key", one.key.hex()},
                    {"label", one.label},
                    {"folder", one.folder},
                    {"reason", one.reason},
                    {"why", one.why},
                    {"removed", one.removed}});
  }
  return json;
}

void complain_of_bad(const std::vector<BadEntry>& bad) {
  for (const BadEntry& one : bad) {
    complain(visible("program " + short_key(one.key) + " (" + one.label + "): " + one.reason + ": " + one.why));
  }
}

Json aside_json(const std::vector<AsideProgram>& aside) {
  Json json = Json::array();
  for (const AsideProgram& one : aside) {
    json.push_back({{"key", one.key.hex()},
                    {"label", one.label},
                    {"folder", one.folder},
                    {"state", one.quarantined ? "quarantined" : "suspect"},
                    {"why", one.why},
                    {"since", one.since_s},
                    {"until", one.quarantined ? Json(one.until_s) : Json(nullptr)}});
  }
  return json;
}

std::string aside_text(const std::vector<AsideProgram>& aside) {
  std::string text;
  for (const AsideProgram& one : aside) {
    text += std::string(one.quarantined ? "quarantined: " : "suspect: ") + short_key(one.key) +
            (one.label.empty() ? "" : " (" + visible(one.label) + ")") + ": " + visible(words_of(one)) + "\n";
  }
  return text;
}

std::string rejected_text(const RejectedCounts& rejected) {
  std::string text;
  const Json counts = rejected_json(rejected);
  for (const auto& [reason, count] : counts.items()) {
    if (count == 0) continue;
    text += (text.empty() ? "" : ", ") + json_text(count) + " " + reason;
  }
  return text;
}

std::string words_of(const CacheDevice& device) {
  if (device.device.empty()) return visible(device.folder);
  return visible(device.driver.empty() ? device.device : device.device + ", " + device.driver);
}

std::string in_short(const std::string& text, std::size_t most) {
  const auto lines = std::count(text.begin(), text.end(), '\n') + (text.empty() || text.back() == '\n' ? 0 : 1);
  if (text.size() <= most && lines <= 1) return visible(text);
  std::string begin = text.substr(0, std::min(text.find('\n'), most));
  while (!begin.empty() && continues_a_character(begin.back())) begin.pop_back();
  if (!begin.empty() && static_cast<unsigned char>(begin.back()) >= 0xc0) begin.pop_back();
  return visible(begin) + " … (" + counted(static_cast<std::uint64_t>(lines), "line") + ", " + human_size(text.size()) +
         ")";
}

std::string short_key(const Digest& key) { return key.hex().substr(0, 12); }

}  // namespace kiln::host
