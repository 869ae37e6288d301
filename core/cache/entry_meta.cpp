#include "cache/entry_meta.hpp"

#include <kiln_json.hpp>

#include <algorithm>

namespace kiln {

namespace {

constexpr int meta_schema = 1;

void read_field(const Json& object, const char* name, std::string& to) {
  if (const auto at = object.find(name); at != object.end() && at->is_string()) to = at->get<std::string>();
}

void read_field(const Json& object, const char* name, std::uint64_t& to) {
  if (const auto at = object.find(name); at != object.end() && at->is_number_unsigned()) to = at->get<std::uint64_t>();
}

void read_field(const Json& object, const char* name, double& to) {
  if (const auto at = object.find(name); at != object.end() && at->is_number()) to = at->get<double>();
}

}  // namespace

std::string encode_meta(const EntryMeta& meta) {
  Json object;
  object["schema"] = meta_schema;
  object["key"] = meta.key;
  object["label"] = meta.label;
  object["op"] = meta.operation;
  object["shape"] = meta.shape;
  object["variant"] = meta.variant;
  object["build_ms"] = meta.build_ms;
  object["first_dispatch_ms"] = meta.first_dispatch_ms;
  object["load_ms"] = meta.load_ms;
  object["warm_dispatch_ms"] = meta.warm_dispatch_ms;
  object["gflops"] = meta.gflops;
  object["times_used"] = meta.times_used;
  object["last_used"] = meta.last_used;
  object["runs"] = meta.runs;
  object["first_use_ms"] = meta.first_use_ms;
  return json_text(object, 2) + "\n";
}

std::optional<EntryMeta> decode_meta(std::string_view json) {
  const Json object = parse_json(json);
  if (!object.is_object()) return std::nullopt;
  EntryMeta meta;
  read_field(object, "key", meta.key);
  read_field(object, "label", meta.label);
  read_field(object, "op", meta.operation);
  read_field(object, "shape", meta.shape);
  read_field(object, "variant", meta.variant);
  read_field(object, "build_ms", meta.build_ms);
  read_field(object, "first_dispatch_ms", meta.first_dispatch_ms);
  read_field(object, "load_ms", meta.load_ms);
  read_field(object, "warm_dispatch_ms", meta.warm_dispatch_ms);
  read_field(object, "first_use_ms", meta.first_use_ms);
  read_field(object, "gflops", meta.gflops);
  read_field(object, "times_used", meta.times_used);
  read_field(object, "runs", meta.runs);
  if (const auto at = object.find("last_used"); at != object.end() && at->is_number_integer()) {
    meta.last_used = at->get<std::int64_t>();
  }
  return meta;
}

namespace {

constexpr double half_at_ms = 2000;  // into a run: what is needed then counts half of what is needed at once

double made_ms(const EntryMeta& meta) { return meta.build_ms + meta.first_dispatch_ms; }

double taken_in_ms(const EntryMeta& meta) { return meta.load_ms + meta.warm_dispatch_ms; }

// What taking a program in costs of what making it cost, over those of which both are known.
double share_of_making(std::span<const EntryMeta> programs) {
  double taken_in = 0, made = 0;
  for (const EntryMeta& meta : programs) {
    if (meta.load_ms <= 0) continue;
    taken_in += taken_in_ms(meta);
    made += made_ms(meta);
  }
  return made > 0 ? taken_in / made : 1;
}

}  // namespace

std::vector<double> expected_stalls(std::span<const EntryMeta> programs) {
  const double share = share_of_making(programs);
  std::uint64_t most_runs = 1;
  for (const EntryMeta& meta : programs) most_runs = std::max(most_runs, meta.runs);
  std::vector<double> stalls;
  stalls.reserve(programs.size());
  for (const EntryMeta& meta : programs) {
    const double stall_ms = meta.load_ms > 0 ? taken_in_ms(meta) : share * made_ms(meta);
    const double used = static_cast<double>(std::max<std::uint64_t>(meta.runs, 1)) / static_cast<double>(most_runs);
    stalls.push_back(stall_ms * used * half_at_ms / (half_at_ms + meta.first_use_ms));
  }
  return stalls;
}

}  // namespace kiln
