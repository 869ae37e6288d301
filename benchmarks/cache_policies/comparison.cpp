#include "cache_policies/comparison.hpp"

#include "cache_policies/references.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <stdexcept>

namespace kiln::bench {
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
