#include "cache/policy_comparison.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <optional>
#include <random>
#include <sstream>
#include <stdexcept>

#include <nlohmann/json.hpp>

namespace kiln::bench {
namespace {

using Words = std::vector<std::string>;

std::optional<std::uint64_t> number(const std::string& word) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc{} || end != word.data() + word.size()) return std::nullopt;
  return value;
}

struct Reading {
  Trace trace;
  std::map<std::string, std::vector<std::uint32_t>> passes;

  // Why the line cannot be read; empty where it was.
  std::string line(const Words& words) {
    if (words[0] == "key") return key(words);
    if (words[0] == "pass") return pass(words);
    if (words[0] == "run") return run(words);
    if (words[0] == "ask") return keys(words, 1, trace.requests);
    return "'" + words[0] + "': expected key, pass, run or ask";
  }

  std::string key(const Words& words) {
    if (words.size() != 4) return "expected 'key NAME BYTES BUILD_NS'";
    const auto bytes = number(words[2]);
    const auto build_ns = number(words[3]);
    if (!bytes || *bytes == 0 || !build_ns) return "'" + words[2] + "', '" + words[3] + "': expected two numbers";
    trace.programs.push_back({words[1], *bytes, *build_ns});
    return {};
  }

  std::string pass(const Words& words) {
    if (words.size() < 3) return "expected 'pass NAME KEY...'";
    std::vector<std::uint32_t> sequence;
    if (std::string why = keys(words, 2, sequence); !why.empty()) return why;
    if (!passes.try_emplace(words[1], std::move(sequence)).second) return "pass '" + words[1] + "' was given before";
    return {};
  }

  // Appends the keys that the words from `first` on name by number.
  std::string keys(const Words& words, std::size_t first, std::vector<std::uint32_t>& into) const {
    for (std::size_t i = first; i < words.size(); ++i) {
      const auto key = number(words[i]);
      if (!key || *key >= trace.programs.size()) {
        return "'" + words[i] + "': expected the number of a key above, of which there are " +
               std::to_string(trace.programs.size());
      }
      into.push_back(static_cast<std::uint32_t>(*key));
    }
    return {};
  }

  std::string run(const Words& words) {
    for (std::size_t i = 1; i < words.size(); ++i) {
      const auto found = passes.find(words[i]);
      if (found == passes.end()) return "'" + words[i] + "': no pass of that name above";
      trace.requests.insert(trace.requests.end(), found->second.begin(), found->second.end());
    }
    return {};
  }
};

std::vector<std::uint64_t> request_counts(const Trace& trace) {
  std::vector<std::uint64_t> counts(trace.programs.size());
  for (const std::uint32_t request : trace.requests) ++counts[request];
  return counts;
}

}  // namespace

Result<Trace> read_trace(const std::filesystem::path& file) {
  std::ifstream stream(file);
  if (!stream) return not_found("trace '" + file.string() + "' cannot be opened");
  Reading reading;
  reading.trace.name = file.stem().string();
  std::string text;
  for (int line = 1; std::getline(stream, text); ++line) {
    std::istringstream parts(text.substr(0, text.find('#')));
    Words words;
    for (std::string word; parts >> word;) words.push_back(word);
    if (words.empty()) continue;
    if (const std::string why = reading.line(words); !why.empty()) {
      return invalid_argument(file.string() + ":" + std::to_string(line) + ": " + why);
    }
  }
  if (stream.bad()) return io_error("trace '" + file.string() + "' cannot be read to its end");
  if (reading.trace.requests.empty()) return invalid_argument(file.string() + ": nothing is run or asked for");
  return std::move(reading.trace);
}

std::uint64_t working_set_bytes(const Trace& trace) {
  const auto counts = request_counts(trace);
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) bytes += counts[i] > 1 ? trace.programs[i].bytes : 0;
  return bytes;
}

std::uint64_t possible_ns(const Trace& trace) {
  const auto counts = request_counts(trace);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < counts.size(); ++i)
    sum += counts[i] > 1 ? (counts[i] - 1) * trace.programs[i].build_ns : 0;
  return sum;
}

std::uint64_t possible_hits(const Trace& trace) {
  std::uint64_t hits = 0;
  for (const std::uint64_t count : request_counts(trace)) hits += count > 1 ? count - 1 : 0;
  return hits;
}

namespace {

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : twister_(seed) {}
  double uniform() { return static_cast<double>(twister_() >> 11) * 0x1p-53; }  // [0, 1)
  double log_uniform(double least, double most) { return least * std::pow(most / least, uniform()); }
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(uniform() * static_cast<double>(count)); }

 private:
  std::mt19937_64 twister_;
};

TracedProgram random_program(Dice& dice, std::string name) {
  return {std::move(name), static_cast<std::uint64_t>(dice.log_uniform(12e3, 160e3)),
          static_cast<std::uint64_t>(dice.log_uniform(20e6, 1000e6))};
}

}  // namespace

Trace generate(const ZipfMix& mix) {
  Dice dice(mix.seed);
  Trace trace;
  trace.name = mix.name;
  std::vector<std::uint32_t> by_rank;
  std::vector<double> below_rank;  // running sums of the weights
  double sum = 0;
  for (std::uint32_t rank = 0; rank < mix.programs; ++rank) {
    by_rank.push_back(rank);
    below_rank.push_back(sum += std::pow(rank + 1.0, -mix.skew));
    trace.programs.push_back(random_program(dice, "zipf" + std::to_string(rank)));
  }
  for (std::uint32_t request = 1; request <= mix.requests; ++request) {
    const auto rank = std::upper_bound(below_rank.begin(), below_rank.end() - 1, dice.uniform() * sum);
    trace.requests.push_back(by_rank[static_cast<std::size_t>(rank - below_rank.begin())]);
    if (mix.scan_every != 0 && request % mix.scan_every == 0) {
      for (std::uint32_t i = 0; i < mix.scan_length; ++i) {
        trace.requests.push_back(static_cast<std::uint32_t>(trace.programs.size()));
        trace.programs.push_back(random_program(dice, "scan" + std::to_string(trace.programs.size())));
      }
    }
    if (mix.shuffle_every != 0 && request % mix.shuffle_every == 0) {
      for (std::size_t i = by_rank.size(); i > 1; --i) std::swap(by_rank[i - 1], by_rank[dice.below(i)]);
    }
  }
  return trace;
}

std::vector<ZipfMix> standard_mixes(std::uint64_t seed) {
  std::vector<ZipfMix> mixes(5);
  mixes[0] = {"zipf_0.8", 1000, 0.8, 60'000, 0, 0, 0, seed};
  mixes[1] = {"zipf_1.0", 1000, 1.0, 60'000, 0, 0, 0, seed};
  mixes[2] = {"zipf_0.8_scans", 1000, 0.8, 60'000, 1000, 200, 0, seed};
  mixes[3] = {"zipf_1.0_scans", 1000, 1.0, 60'000, 1000, 200, 0, seed};
  mixes[4] = {"zipf_1.0_moving", 1000, 1.0, 60'000, 0, 0, 15'000, seed};
  return mixes;
}

namespace {

constexpr const char* policies[] = {"lru", "sieve", "cost"};

double percent(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

Outcome run(const Trace& trace, std::uint64_t capacity, const char* name, Uses uses) {
  auto policy = make_eviction_policy(name);
  if (!policy) throw std::logic_error(policy.error().text());
  return simulate(trace, capacity, **policy, uses);
}

}  // namespace

double Comparison::hit_percent(const ComparedRow& row) const { return percent(row.outcome.hits, requests); }
double Comparison::saved_percent(const ComparedRow& row) const { return percent(row.outcome.saved_ns, possible_ns); }

Comparison compare(const Trace& trace, double part) {
  Comparison result;
  result.trace = trace.name;
  result.requests = trace.requests.size();
  result.programs = trace.programs.size();
  result.part = part;
  result.working_set_bytes = working_set_bytes(trace);
  result.capacity_bytes = static_cast<std::uint64_t>(part * static_cast<double>(result.working_set_bytes));
  result.possible_hits = possible_hits(trace);
  result.possible_ns = possible_ns(trace);
  const std::uint64_t capacity = result.capacity_bytes;
  for (const char* name : policies) {
    result.rows.push_back({name, "stamped", run(trace, capacity, name, Uses::stamped)});
    result.rows.push_back({name, "exact", run(trace, capacity, name, Uses::exact)});
  }
  result.rows.push_back({"perfect LFU", "known", perfect_lfu(trace, capacity)});
  result.rows.push_back({"perfect cost", "known", perfect_cost(trace, capacity)});
  result.rows.push_back({"Belady", "known", belady(trace, capacity)});
  result.rows.push_back({"Belady by cost", "known", belady_cost(trace, capacity)});
  result.rows.push_back({"upper bound", "known", upper_bound(trace, capacity)});
  return result;
}

std::string table_of(const Comparison& comparison) {
  char line[200];
  std::snprintf(line, sizeof line, "%s: %llu requests of %llu programs, %.3g of the working set = %.2f of %.2f MB\n",
                comparison.trace.c_str(), static_cast<unsigned long long>(comparison.requests),
                static_cast<unsigned long long>(comparison.programs), comparison.part,
                static_cast<double>(comparison.capacity_bytes) / 1e6,
                static_cast<double>(comparison.working_set_bytes) / 1e6);
  std::string text = line;
  const double lru = comparison.saved_percent(comparison.rows.front());
  std::snprintf(line, sizeof line, "  %-15s %-8s %8s %12s %9s %10s %9s\n", "policy", "uses", "hits %", "time saved %",
                "/ lru", "evictions", "refused");
  text += line;
  for (const ComparedRow& row : comparison.rows) {
    const double saved = comparison.saved_percent(row);
    std::snprintf(line, sizeof line, "  %-15s %-8s %8.1f %12.1f %9.2f %10llu %9llu\n", row.name.c_str(),
                  row.uses.c_str(), comparison.hit_percent(row), saved, lru > 0 ? saved / lru : 0.0,
                  static_cast<unsigned long long>(row.outcome.evictions),
                  static_cast<unsigned long long>(row.outcome.refused));
    text += line;
  }
  std::snprintf(line, sizeof line, "  %-15s %-8s %8.1f %12.1f\n", "without bound", "known",
                percent(comparison.possible_hits, comparison.requests), 100.0);
  return text + line;
}

std::string json_of(const std::vector<Comparison>& comparisons) {
  nlohmann::ordered_json json;
  json["schema"] = 1;
  json["comparisons"] = nlohmann::ordered_json::array();
  for (const Comparison& comparison : comparisons) {
    nlohmann::ordered_json one{{"trace", comparison.trace},
                               {"requests", comparison.requests},
                               {"programs", comparison.programs},
                               {"part", comparison.part},
                               {"capacity_bytes", comparison.capacity_bytes},
                               {"working_set_bytes", comparison.working_set_bytes},
                               {"possible_hits", comparison.possible_hits},
                               {"possible_ms", static_cast<double>(comparison.possible_ns) / 1e6}};
    for (const ComparedRow& row : comparison.rows) {
      one["rows"].push_back({{"name", row.name},
                             {"uses", row.uses},
                             {"hits", row.outcome.hits},
                             {"hit_percent", comparison.hit_percent(row)},
                             {"saved_ms", static_cast<double>(row.outcome.saved_ns) / 1e6},
                             {"saved_percent", comparison.saved_percent(row)},
                             {"evictions", row.outcome.evictions},
                             {"refused", row.outcome.refused},
                             {"policy_ns_per_miss", row.outcome.policy_ns_per_miss}});
    }
    json["comparisons"].push_back(std::move(one));
  }
  return json.dump(1) + "\n";
}

}  // namespace kiln::bench
