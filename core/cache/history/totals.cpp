#include "cache/history/totals.hpp"

#include "base/json.hpp"
#include "cache/folder/new_file.hpp"
#include "cache/folder/read_file.hpp"
#include "cache/history/brief_lock.hpp"

#include <ctime>

namespace kiln {
namespace {

constexpr int totals_schema = 1;
constexpr std::uint64_t most_bytes = 64 << 10;

template <class Owner>
struct Count {
  const char* name;
  std::uint64_t Owner::*value;
};

constexpr Count<CacheStats> counts[] = {
    {"memory_hits", &CacheStats::memory_hits},
    {"disk_hits", &CacheStats::disk_hits},
    {"misses", &CacheStats::misses},
    {"builds", &CacheStats::builds},
    {"prepared", &CacheStats::prepared},
    {"failed_builds", &CacheStats::failed_builds},
    {"waits", &CacheStats::waits},
    {"evictions", &CacheStats::evictions},
    {"disk_evictions", &CacheStats::disk_evictions},
    {"lease_waits", &CacheStats::lease_waits},
    {"lease_wait_ns", &CacheStats::lease_wait_ns},
    {"lease_takeovers", &CacheStats::lease_takeovers},
    {"lease_timeouts", &CacheStats::lease_timeouts},
    {"negative_hits", &CacheStats::negative_hits},
    {"absent", &CacheStats::absent},
    {"evicted", &CacheStats::evicted},
    {"timed_out", &CacheStats::timed_out},
};

constexpr Count<RejectedCounts> reasons[] = {
    {"corrupt", &RejectedCounts::corrupt}, {"tampered", &RejectedCounts::tampered},
    {"foreign", &RejectedCounts::foreign}, {"driver_changed", &RejectedCounts::driver_changed},
    {"refused", &RejectedCounts::refused}, {"quarantined", &RejectedCounts::quarantined},
};

std::uint64_t count_in(const Json& object, const char* name) {
  const auto at = object.find(name);
  return at != object.end() && at->is_number_unsigned() ? at->get<std::uint64_t>() : 0;
}

double number_in(const Json& object, const char* name) {
  const auto at = object.find(name);
  return at != object.end() && at->is_number() ? at->get<double>() : 0;
}

std::int64_t time_in(const Json& object, const char* name) {
  const auto at = object.find(name);
  return at != object.end() && at->is_number_integer() ? at->get<std::int64_t>() : 0;
}

Json object_of(std::string_view json) {
  Json object = parse_json(json);
  if (!object.is_object() || count_in(object, "schema") != totals_schema) return {{"schema", totals_schema}};
  return object;
}

template <class Owner, std::size_t n>
void add(Json& object, const Count<Owner> (&names)[n], const Owner& more) {
  for (const auto& [name, value] : names) object[name] = count_in(object, name) + more.*value;
}

template <class Owner, std::size_t n>
std::uint64_t sum_of(const Count<Owner> (&names)[n], const Owner& owner) {
  std::uint64_t sum = 0;
  for (const auto& [name, value] : names) sum += owner.*value;
  return sum;
}

std::string text_of(const FileContents& file) {
  return {reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size()};
}

}  // namespace

std::string totals_with(std::string_view json, const CacheStats& process, std::int64_t now_s) {
  Json object = object_of(json);
  if (time_in(object, "since") == 0) object["since"] = now_s;
  object["updated"] = now_s;
  object["processes"] = count_in(object, "processes") + 1;
  add(object, counts, process);
  Json& rejected = object["rejected"];
  if (!rejected.is_object()) rejected = Json::object();
  add(rejected, reasons, process.rejected);
  object["saved_ms"] = number_in(object, "saved_ms") + process.saved_ms;
  return json_text(object, 2) + "\n";
}

CacheTotals totals_of(std::string_view json) {
  const Json object = object_of(json);
  CacheTotals totals;
  for (const auto& [name, value] : counts) totals.counts.*value = count_in(object, name);
  if (const auto rejected = object.find("rejected"); rejected != object.end() && rejected->is_object()) {
    for (const auto& [name, value] : reasons) totals.counts.rejected.*value = count_in(*rejected, name);
  }
  totals.counts.saved_ms = number_in(object, "saved_ms");
  totals.processes = count_in(object, "processes");
  totals.since_s = time_in(object, "since");
  totals.updated_s = time_in(object, "updated");
  return totals;
}

void add_to_totals(int root, const CacheStats& process) {
  if (sum_of(counts, process) + sum_of(reasons, process.rejected) == 0) return;
  const auto lock = BriefLock::take(root, history_lock_name, history_patience);
  if (!lock) return;
  const FileContents file = read_file(root, totals_name, most_bytes);
  const std::string text = totals_with(text_of(file), process, std::time(nullptr));
  // What cannot be written is lost: these are figures for people.
  static_cast<void>(write_file(root, totals_name, std::as_bytes(std::span(text))));
}

CacheTotals read_totals(int root) { return totals_of(text_of(read_file(root, totals_name, most_bytes))); }

}  // namespace kiln
