#include "cache/history.hpp"

#include "base/os/file_lock.hpp"
#include "base/os/private_folder.hpp"
#include "cache/key_material.hpp"

#include <kiln_json.hpp>

#include <algorithm>
#include <ctime>
#include <optional>
#include <unordered_set>

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

double double_in(const Json& object, const char* name) {
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
void add_counts(Json& object, const Count<Owner> (&names)[n], const Owner& more) {
  for (const auto& [name, value] : names) object[name] = count_in(object, name) + more.*value;
}

template <class Owner, std::size_t n>
std::uint64_t sum_of(const Count<Owner> (&names)[n], const Owner& owner) {
  std::uint64_t sum = 0;
  for (const auto& [name, value] : names) sum += owner.*value;
  return sum;
}

std::uint64_t sum_of(const SharedCounts& shared) {
  std::uint64_t sum = 0;
  for (const auto& [name, value] : shared_count_names()) sum += shared.*value;
  return sum;
}

}  // namespace

std::string totals_with(std::string_view json, const CacheStats& process, std::int64_t now_s) {
  Json object = object_of(json);
  if (time_in(object, "since") == 0) object["since"] = now_s;
  object["updated"] = now_s;
  object["processes"] = count_in(object, "processes") + 1;
  add_counts(object, counts, process);
  Json& rejected = object["rejected"];
  if (!rejected.is_object()) rejected = Json::object();
  add_counts(rejected, reasons, process.rejected);
  Json& shared = object["shared"];
  if (!shared.is_object()) shared = Json::object();
  for (const auto& [name, value] : shared_count_names()) {
    if (const std::uint64_t more = process.shared.*value; more != 0) shared[name] = count_in(shared, name) + more;
  }
  object["saved_ms"] = double_in(object, "saved_ms") + process.saved_ms;
  return json_text(object, 2) + "\n";
}

CacheTotals totals_of(std::string_view json) {
  const Json object = object_of(json);
  CacheTotals totals;
  for (const auto& [name, value] : counts) totals.counts.*value = count_in(object, name);
  if (const auto rejected = object.find("rejected"); rejected != object.end() && rejected->is_object()) {
    for (const auto& [name, value] : reasons) totals.counts.rejected.*value = count_in(*rejected, name);
  }
  if (const auto shared = object.find("shared"); shared != object.end() && shared->is_object()) {
    for (const auto& [name, value] : shared_count_names()) totals.counts.shared.*value = count_in(*shared, name);
  }
  totals.counts.saved_ms = double_in(object, "saved_ms");
  totals.processes = count_in(object, "processes");
  totals.since_s = time_in(object, "since");
  totals.updated_s = time_in(object, "updated");
  return totals;
}

void add_to_totals(int root, const CacheStats& process) {
  if (sum_of(counts, process) + sum_of(reasons, process.rejected) + sum_of(process.shared) == 0) return;
  const auto lock = BriefLock::take(root, history_lock_name, history_patience);
  if (!lock) return;
  const FileContents file = read_file(root, totals_name, most_bytes);
  const std::string text = totals_with(text_of(file.bytes), process, std::time(nullptr));
  // What cannot be written is lost: these are figures for people.
  static_cast<void>(write_file(root, totals_name, std::as_bytes(std::span(text))));
}

CacheTotals read_totals(int root) { return totals_of(text_of(read_file(root, totals_name, most_bytes).bytes)); }

namespace {

constexpr std::uint64_t missed_schema = 1;
constexpr std::size_t most_keys = 1024;
constexpr std::size_t most_material = 1 << 20;
constexpr std::size_t most_together = 4 << 20;
constexpr std::uint64_t most_file_bytes = 8 << 20;
constexpr std::size_t most_word_bytes = 4096;  // of a label or a reason

constexpr std::size_t fields_of_a_key = 5;

std::optional<std::uint64_t> integer(const KeyField& field, std::string_view name) {
  if (field.name != name || field.value.size() != sizeof(std::uint64_t)) return std::nullopt;
  return read_little_endian<std::uint64_t>(std::as_bytes(std::span(field.value)), 0);
}

std::optional<MissedKey> key_of_fields(std::span<const KeyField> fields) {
  const auto missed = integer(fields[0], "missed");
  const auto reason = integer(fields[2], "reason");
  if (!missed || fields[1].name != "label" || !reason || *reason >= rejection_kinds || fields[3].name != "why" ||
      fields[4].name != "material") {
    return std::nullopt;
  }
  return MissedKey{std::string(fields[1].value), std::string(fields[4].value), static_cast<Rejection>(*reason),
                   std::string(fields[3].value), static_cast<std::int64_t>(*missed)};
}

std::size_t bytes_of_miss(const MissedKey& key) { return key.label.size() + key.why.size() + key.material.size(); }

// The newest that fit the bounds, one for each key, oldest first.
std::vector<MissedKey> newest(std::vector<MissedKey> keys) {
  std::vector<MissedKey*> kept;  // newest first
  std::unordered_set<std::string_view> seen;
  std::size_t bytes = 0;
  for (auto key = keys.rbegin(); key != keys.rend() && kept.size() < most_keys; ++key) {
    if (!seen.insert(key->material).second) continue;
    bytes += bytes_of_miss(*key);
    if (bytes > most_together) break;
    kept.push_back(&*key);
  }
  std::vector<MissedKey> oldest_first;
  oldest_first.reserve(kept.size());
  for (auto key = kept.rbegin(); key != kept.rend(); ++key) oldest_first.push_back(std::move(**key));
  return oldest_first;
}

}  // namespace

void MissedKeys::note(const ProgramKey& key, Rejection reason, std::string why) {
  if (key.material.size() > most_material) return;
  MissedKey missed{key.label.substr(0, most_word_bytes), key.material, reason, std::move(why), std::time(nullptr)};
  missed.why.resize(std::min(missed.why.size(), most_word_bytes));
  const std::lock_guard lock(mutex_);
  bytes_ += bytes_of_miss(missed);
  missed_.push_back(std::move(missed));
  while (missed_.size() > most_keys || bytes_ > most_together) {
    bytes_ -= bytes_of_miss(missed_.front());
    missed_.pop_front();
  }
}

void MissedKeys::save(int root) {
  std::vector<MissedKey> own;
  {
    const std::lock_guard lock(mutex_);
    own.assign(std::make_move_iterator(missed_.begin()), std::make_move_iterator(missed_.end()));
    missed_.clear();
    bytes_ = 0;
  }
  if (own.empty()) return;
  const auto held = BriefLock::take(root, history_lock_name, history_patience);
  if (!held) return;
  std::vector<MissedKey> all = read_missed_keys(root);
  all.insert(all.end(), std::make_move_iterator(own.begin()), std::make_move_iterator(own.end()));
  const std::string bytes = encode_missed_keys(newest(std::move(all)));
  static_cast<void>(write_file(root, missed_keys_name, std::as_bytes(std::span(bytes))));
}

std::vector<MissedKey> read_missed_keys(int root) {
  const FileContents file = read_file(root, missed_keys_name, most_file_bytes);
  return decode_missed_keys({reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size()});
}

std::string encode_missed_keys(const std::vector<MissedKey>& keys) {
  KeyEncoder encoder;
  encoder.field("schema", missed_schema);
  for (const MissedKey& key : keys) {
    encoder.field("missed", static_cast<std::uint64_t>(key.missed_s));
    encoder.field("label", key.label);
    encoder.field("reason", static_cast<std::uint64_t>(key.reason));
    encoder.field("why", key.why);
    encoder.field("material", key.material);
  }
  return encoder.material();
}

std::vector<MissedKey> decode_missed_keys(std::string_view bytes) {
  const auto fields = decode_key_material(bytes);
  if (!fields || fields->empty() || integer(fields->front(), "schema") != missed_schema) return {};
  std::vector<MissedKey> keys;
  for (std::size_t at = 1; at + fields_of_a_key <= fields->size(); at += fields_of_a_key) {
    auto key = key_of_fields(std::span(*fields).subspan(at, fields_of_a_key));
    if (!key) return {};
    keys.push_back(std::move(*key));
  }
  return keys;
}

}  // namespace kiln
