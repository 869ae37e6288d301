#include "exit_status.hpp"
#include "report/text_table.hpp"
#include "verbs/cache/cache_verb.hpp"
#include "verbs/verbs.hpp"

#include <algorithm>
#include <ctime>

namespace kiln::host {
namespace {

Json inspection_json(const ProgramInspection& one) {
  const CachedProgram& program = one.program;
  Json json{{"schema", 1}, {"key", program.key.hex()}, {"label", program.label}, {"path", one.path}};
  json["op"] = program.purpose.operation;
  json["shape"] = program.purpose.shape;
  json["variant"] = program.purpose.variant;
  json["pending"] = program.pending;
  json["verdict"] = one.verdict;
  json["why"] = one.why.empty() ? Json(nullptr) : Json(one.why);
  json["device"] = {{"folder", one.device.folder},
                    {"device", one.device.device},
                    {"kind", one.device.kind},
                    {"driver", one.device.driver}};
  json["entry"] = {{"schema", one.schema},
                   {"compression", one.compression},
                   {"format", one.format},
                   {"signed_by", one.signed_by},
                   {"material_bytes", one.material_bytes},
                   {"stored_bytes", one.stored_bytes},
                   {"inflated_bytes", one.inflated_bytes},
                   {"build_ms", one.build_ms}};
  json["meta"] = {
      {"bytes", program.bytes},   {"build_ms", program.build_ms},     {"first_dispatch_ms", program.first_dispatch_ms},
      {"gflops", program.gflops}, {"times_used", program.times_used}, {"last_used", program.last_used_s}};
  json["driver_files"] = Json::array();
  for (const CachedDriverFile& file : one.driver_files) {
    json["driver_files"].push_back({{"name", file.name}, {"bytes", file.bytes}});
  }
  json["fields"] = Json::array();
  for (const KeyFieldText& field : one.fields) json["fields"].push_back({{"name", field.name}, {"text", field.text}});
  return json;
}

std::string ms_or_unknown(double ms) { return ms > 0 ? human_ms(ms) : "not known"; }

std::string word_or_unknown(const std::string& text) { return text.empty() ? "not known" : visible(text); }

std::string inspection_text(const ProgramInspection& one) {
  const CachedProgram& program = one.program;
  TextTable table({{"label", Align::left}, {word_or_unknown(program.label), Align::left}});
  table.add({"key", program.key.hex()});
  table.add({"computes", word_or_unknown(program.purpose.operation) + ", " + word_or_unknown(program.purpose.shape)});
  table.add({"variant", word_or_unknown(program.purpose.variant)});
  table.add({"file", visible(one.path)});
  table.add({"verdict", one.why.empty() ? one.verdict : one.verdict + ": " + visible(one.why)});
  if (program.pending) table.add({"state", "pending: waits for kiln cache persist"});
  table.add({"device", words_of(one.device)});
  if (one.schema != 0) {
    table.add({"format",
               visible(one.format) + ", schema " + std::to_string(one.schema) + ", signed by key " + one.signed_by});
    table.add({"payload", human_size(one.inflated_bytes) + ", stored as " + human_size(one.stored_bytes) + " (" +
                              one.compression + ")"});
  }
  if (!one.driver_files.empty()) {
    std::uint64_t bytes = 0;
    for (const CachedDriverFile& file : one.driver_files) bytes += file.bytes;
    table.add({"driver files", std::to_string(one.driver_files.size()) + ", " + human_size(bytes)});
  }
  table.add({"on disk", human_size(program.bytes)});
  table.add({"build", ms_or_unknown(program.build_ms > 0 ? program.build_ms : one.build_ms)});
  table.add({"first dispatch", ms_or_unknown(program.first_dispatch_ms)});
  table.add({"rate", program.gflops > 0 ? short_number(program.gflops) + " GFLOP/s" : "not known"});
  table.add(
      {"used", counted(program.times_used, "time") + ", last " + human_age(program.last_used_s, std::time(nullptr))});
  std::string text = table.text();
  if (one.fields.empty()) return text;
  TextTable fields({{"field of the key", Align::left}, {"", Align::left}});
  for (std::size_t at = 0; at < one.fields.size();) {
    const std::string& name = one.fields[at].name;
    std::string texts = in_short(one.fields[at].text);
    for (++at; at < one.fields.size() && one.fields[at].name == name; ++at)
      texts += ", " + in_short(one.fields[at].text);
    fields.add({visible(name), std::move(texts)});
  }
  return text + "\n" + fields.text();
}

}  // namespace

int cache_inspect(const Options& options) {
  CacheConfig cache;
  if (const auto end = read_cache_config(options, cache)) return *end;
  const auto one = inspect_program(cache, options.subject);
  if (!one) return complain_of(one.error());
  if (options.json) return finish_json(inspection_json(*one), options);
  return finish(inspection_text(*one), options);
}

int cache_release(const Options& options) {
  CacheConfig cache;
  if (const auto end = read_cache_config(options, cache)) return *end;
  const auto released = release_programs(cache, options.subject);
  if (!released) return complain_of(released.error());
  if (options.json) return finish_json({{"schema", 1}, {"released", aside_json(*released)}}, options);
  std::string text;
  for (const AsideProgram& one : *released) {
    text += "released " + short_key(one.key) + (one.label.empty() ? "" : " (" + visible(one.label) + ")") + "\n";
  }
  return finish(text, options);
}

}  // namespace kiln::host
