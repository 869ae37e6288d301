// `kiln selector replay`: how other policies would have fared on recorded decisions.
#include "base/os/private_folder.hpp"
#include "exit_status.hpp"
#include "report/config_problems.hpp"
#include "report/human.hpp"
#include "report/text_table.hpp"
#include "verbs/cache/cache_verb.hpp"
#include "verbs/verbs.hpp"

#include <kiln/config_reader.hpp>
#include <kiln/selector_admin.hpp>

namespace kiln::host {
namespace {

Json replay_json(const SelectorReplay& replay) {
  Json json{{"schema", 1},
            {"decisions", replay.decisions},
            {"judged", replay.judged},
            {"looks", replay.looks},
            {"without_outcome", replay.without_outcome},
            {"recorded_ms", to_ms(replay.recorded_mean_ns)},
            {"policies", Json::array()},
            {"rejected", Json::array()}};
  for (const PolicyVerdict& verdict : replay.policies) {
    json["policies"].push_back({{"policy", verdict.policy},
                                {"ms", to_ms(verdict.mean_ns)},
                                {"low_ms", to_ms(verdict.low_ns)},
                                {"high_ms", to_ms(verdict.high_ns)},
                                {"agreement", verdict.agreement}});
  }
  for (const RejectedRecord& record : replay.rejected) {
    json["rejected"].push_back({{"line", record.line},
                                {"validator", record.validator},
                                {"expected", record.expected},
                                {"found", record.found}});
  }
  return json;
}

std::string replay_text(const SelectorReplay& replay) {
  std::string text = counted(replay.decisions, "decision") + " recorded: " + std::to_string(replay.judged) +
                     " judged, " + std::to_string(replay.looks) + " looks, " + std::to_string(replay.without_outcome) +
                     " without an outcome or a choice\n";
  if (replay.judged == 0) return text + "there is nothing to judge policies by\n";
  text += "what was chosen took " + human_ms(to_ms(replay.recorded_mean_ns)) + " a decision\n\n";
  TextTable table({{"policy", Align::left},
                   {"ms a decision", Align::right},
                   {"95 % from", Align::right},
                   {"to", Align::right},
                   {"agrees with the log", Align::right}});
  for (const PolicyVerdict& verdict : replay.policies) {
    table.add({verdict.policy, short_number(to_ms(verdict.mean_ns)), short_number(to_ms(verdict.low_ns)),
               short_number(to_ms(verdict.high_ns)), short_number(100 * verdict.agreement) + " %"});
  }
  text += table.text();
  for (const RejectedRecord& record : replay.rejected) text += "skipped: " + visible(record.text()) + "\n";
  return text;
}

}  // namespace

int selector_replay(const Options& options) {
  ConfigReading reading = read_config(options.sources);
  if (!report_reading(reading)) return exit_usage;
  const std::filesystem::path log =
      options.subject.empty() ? reading.config.cache.directory : std::filesystem::path(options.subject);
  if (log.empty()) return complain_of(no_cache_folder());
  const auto replay = replay_selector_log(log, reading.config.selector);
  if (!replay) return complain_of(replay.error());
  return options.json ? finish_json(replay_json(*replay), options) : finish(replay_text(*replay), options);
}

}  // namespace kiln::host
