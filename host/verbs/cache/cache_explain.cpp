#include "exit_status.hpp"
#include "report/text_table.hpp"
#include "verbs/cache/cache_verb.hpp"
#include "verbs/verbs.hpp"

#include <ctime>

namespace kiln::host {
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
  if (!miss.nearest) return text + "no other program was stored by then: nothing to compare it with\n";
  text += "nearest stored: " + named(miss.nearest->label, miss.nearest->key) + ", for " +
          words_of(miss.nearest_device) + "\n\n";
  TextTable table({{"field of the key", Align::left}, {"asked for", Align::left}, {"stored", Align::left}});
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
