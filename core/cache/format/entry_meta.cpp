#include "cache/format/entry_meta.hpp"

#include "base/json.hpp"

namespace kiln {
namespace {

constexpr int meta_schema = 1;

void take(const Json& object, const char* name, std::string& to) {
  if (const auto at = object.find(name); at != object.end() && at->is_string()) to = at->get<std::string>();
}

void take(const Json& object, const char* name, std::uint64_t& to) {
  if (const auto at = object.find(name); at != object.end() && at->is_number_unsigned()) to = at->get<std::uint64_t>();
}

void take(const Json& object, const char* name, double& to) {
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
  take(object, "key", meta.key);
  take(object, "label", meta.label);
  take(object, "op", meta.operation);
  take(object, "shape", meta.shape);
  take(object, "variant", meta.variant);
  take(object, "build_ms", meta.build_ms);
  take(object, "first_dispatch_ms", meta.first_dispatch_ms);
  take(object, "load_ms", meta.load_ms);
  take(object, "warm_dispatch_ms", meta.warm_dispatch_ms);
  take(object, "first_use_ms", meta.first_use_ms);
  take(object, "gflops", meta.gflops);
  take(object, "times_used", meta.times_used);
  take(object, "runs", meta.runs);
  if (const auto at = object.find("last_used"); at != object.end() && at->is_number_integer()) {
    meta.last_used = at->get<std::int64_t>();
  }
  return meta;
}

}  // namespace kiln
