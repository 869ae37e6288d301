#include "selector/log/recorded_decisions.hpp"

#include "base/json.hpp"
#include "selector/log/decision_log.hpp"

#include <kiln/regular_file.hpp>

#include <algorithm>
#include <map>
#include <stdexcept>

namespace kiln::selector {
namespace {

constexpr std::uint64_t most_log_bytes = 64 << 20;  // of one file: several times [selector] log_size
constexpr std::size_t most_line = 1 << 20;
constexpr std::size_t most_rejected = 100;  // told one by one

// Throws what the JSON library throws, or std::runtime_error, where a field is missing or out of range.
RecordedDecision decision_of(const Json& record) {
  RecordedDecision decision;
  decision.bucket = record.at("bucket").get<std::string>();
  decision.ground = record.at("ground").get<std::string>();
  const Json& candidates = record.at("candidates");
  const auto chosen = record.at("chosen").get<std::size_t>();
  const auto options = record.at("options").get<std::vector<std::size_t>>();
  const auto propensities = record.at("propensities").get<std::vector<double>>();
  if (chosen >= candidates.size()) {
    throw std::runtime_error("chosen " + std::to_string(chosen) + " of " + std::to_string(candidates.size()));
  }
  if (propensities.size() != options.size()) {
    throw std::runtime_error(std::to_string(propensities.size()) + " propensities for " +
                             std::to_string(options.size()) + " options");
  }
  decision.chosen_device = candidates[chosen].at("device").get<std::string>();
  decision.chosen = options.size();
  for (std::size_t i = 0; i < options.size(); ++i) {
    const Json& candidate = candidates.at(options[i]);
    RecordedOption option;
    option.device = candidate.at("device").get<std::string>();
    option.option = {candidate.at("fixed_ns").get<double>(), candidate.at("log_ns").get<double>(),
                     candidate.at("deviation").get<double>(), candidate.at("runs").get<std::uint64_t>()};
    option.propensity = propensities[i];
    if (!(option.propensity >= 0 && option.propensity <= 1.001)) {
      throw std::runtime_error("propensity " + std::to_string(option.propensity));
    }
    if (options[i] == chosen) decision.chosen = i;
    decision.options.push_back(std::move(option));
  }
  if (!options.empty() && decision.chosen == options.size()) throw std::runtime_error("the chosen is no option");
  return decision;
}

class Reader {
 public:
  explicit Reader(RecordedLog& log) : log_(log) {}

  void read(std::string_view text) {
    for (std::size_t number = 1; !text.empty(); ++number) {
      const std::string_view line = text.substr(0, text.find('\n'));
      text.remove_prefix(std::min(line.size() + 1, text.size()));
      if (line.size() > most_line) {
        reject(number, "size", std::to_string(most_line) + " bytes at most", std::to_string(line.size()));
        continue;
      }
      const Json record = parse_json(line);
      if (!record.is_object()) {
        reject(number, "json", "an object", std::string(line.substr(0, 60)));
        continue;
      }
      try {
        take(record);
      } catch (const std::exception& error) {
        reject(number, "field", "a decision or an outcome", error.what());
      }
    }
  }

 private:
  void take(const Json& record) {
    if (record.contains("outcome")) {
      const auto at = index_.find(record.at("outcome").get<std::string>());
      if (at == index_.end()) return;  // its decision has left the log
      if (record.at("unfit").get<std::string>() != to_string(Unfit::fit)) return;
      log_.decisions[at->second].fit_ns.push_back(record.at("ns").get<double>());
      return;
    }
    RecordedDecision decision = decision_of(record);
    index_[record.at("decision").get<std::string>()] = log_.decisions.size();
    log_.decisions.push_back(std::move(decision));
  }
  void reject(std::size_t line, std::string validator, std::string expected, std::string found) {
    if (log_.rejected.size() >= most_rejected) return;
    log_.rejected.push_back({line, std::move(validator), std::move(expected), std::move(found)});
  }

  RecordedLog& log_;
  std::map<std::string, std::size_t> index_;
};

}  // namespace

Result<RecordedLog> read_decisions(const std::filesystem::path& log) {
  std::error_code ignored;
  const bool folder = std::filesystem::is_directory(log, ignored);
  RecordedLog recorded;
  Reader reader(recorded);
  bool any = false;
  for (const char* name : {older_decision_log_file, decision_log_file}) {
    if (!folder && name != decision_log_file) continue;
    const std::filesystem::path file = folder ? log / name : log;
    const Result<std::string> text = read_whole_file(file, most_log_bytes);
    if (!text && text.error().code == StatusCode::not_found) continue;
    if (!text) return text.error();
    any = true;
    reader.read(*text);
  }
  if (any) return recorded;
  return not_found(log.string() + ": there is no recorded log; [selector] log = true records one");
}

}  // namespace kiln::selector
