#include "verbs/report.hpp"

#include "console.hpp"
#include "text_table.hpp"
#include "verbs/bench_file.hpp"
#include "verbs/cache_verb.hpp"
#include "verbs/verbs.hpp"

#include <kiln/cache_admin.hpp>
#include <kiln/digest.hpp>
#include <kiln/regular_file.hpp>
#include <kiln/version.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>

#include <unistd.h>

namespace kiln::host::page {
namespace {

constexpr std::uint64_t most_bytes = std::uint64_t{64} << 20;
constexpr std::uint64_t known_schema = 1;
constexpr std::string_view expected_kinds =
    "expected what `kiln run --json`, `kiln run --trace`, `kiln bench`, `kiln tune export` or `kiln cache stats "
    "--json` wrote, or a cache's folder";

struct Source {
  const char* kind;
  Json content;
};

// --- Fields: what the page's script relies on.

enum class Type { invalid = 0, object, array, text, truth, number, amount, count };

// path: names with '.' between them; "jobs[]" stands for each element of an array, "rejected{}" for each member of an
// object, and "work?" for a member that may be absent or null, with all that is below it.
struct Field {
  std::string_view path;
  Type type;
};

constexpr Field run_fields[] = {{"kiln", Type::text},
                                {"jobs[].name", Type::text},
                                {"jobs[].op", Type::text},
                                {"jobs[].status", Type::text},
                                {"jobs[].error?", Type::text},
                                {"jobs[].device?.id", Type::text},
                                {"jobs[].variant?", Type::text},
                                {"jobs[].program.tier?", Type::text},
                                {"jobs[].program.build_ms?", Type::amount},
                                {"jobs[].runs", Type::count},
                                {"jobs[].ms", Type::object},
                                {"jobs[].gflops?", Type::amount},
                                {"jobs[].work?.flops?", Type::amount},
                                {"jobs[].work?.bytes?", Type::amount},
                                {"jobs[].work?.roof_gflops?", Type::amount},
                                {"jobs[].verified?", Type::truth},
                                {"total_ms", Type::amount},
                                {"setup_ms?", Type::amount}};
// Of a job that ran; of another they may be null.
constexpr Field ran_fields[] = {{"ms.wall_median", Type::amount},
                                {"ms.wall_min", Type::amount},
                                {"ms.wall_max", Type::amount},
                                {"ms.first_result", Type::amount}};
// Below "cache" of a run, and at the top of a cache's statistics.
constexpr Field count_fields[] = {
    {"memory_hits", Type::count}, {"disk_hits", Type::count},          {"misses", Type::count},
    {"builds", Type::count},      {"prepared", Type::count},           {"saved_ms", Type::number},
    {"rejected{}", Type::count},  {"shared?.layer_hits", Type::count}, {"shared?.hits", Type::count}};
constexpr Field cache_fields[] = {{"directory", Type::text},           {"processes", Type::count},
                                  {"programs", Type::count},           {"devices[].device?", Type::text},
                                  {"devices[].folder", Type::text},    {"devices[].driver?", Type::text},
                                  {"devices[].programs", Type::count}, {"devices[].bytes", Type::count}};
constexpr Field span_fields[] = {{"name", Type::text}, {"cat?", Type::text}, {"pid", Type::count},
                                 {"tid", Type::count}, {"ts", Type::amount}, {"dur", Type::amount}};
constexpr Field process_name_fields[] = {{"args.name", Type::text}, {"pid", Type::count}};
constexpr Field thread_name_fields[] = {{"args.name", Type::text}, {"pid", Type::count}, {"tid", Type::count}};

std::string_view words_of(Type type) {
  constexpr std::string_view words[] = {"nothing",
                                        "an object",
                                        "an array",
                                        "a text",
                                        "true or false",
                                        "a number",
                                        "a number of at least 0",
                                        "a whole number of at least 0"};
  return words[static_cast<std::size_t>(type)];
}

bool is_of(const Json& value, Type type) {
  switch (type) {
    case Type::object:
      return value.is_object();
    case Type::array:
      return value.is_array();
    case Type::text:
      return value.is_string();
    case Type::truth:
      return value.is_boolean();
    case Type::number:
      return value.is_number() && std::isfinite(value.get<double>());
    case Type::amount:
      return is_of(value, Type::number) && value.get<double>() >= 0;
    case Type::count:
      return value.is_number_unsigned();
    case Type::invalid:
      break;
  }
  return false;
}

std::string words_for(const Json& found) {
  if (found.is_object()) return "an object";
  if (found.is_array()) return "an array";
  if (found.is_string()) return "a text";
  return json_text(found);
}

[[noreturn]] void refuse(const std::string& place, Type expected, const std::string& found) {
  throw std::runtime_error((place.empty() ? "the document" : place) + ": expected " + std::string(words_of(expected)) +
                           ", found " + found);
}

void expect(const Json& value, const std::string& place, Type type) {
  if (!is_of(value, type)) refuse(place, type, words_for(value));
}

// Throws std::runtime_error with the place and both sides: "jobs[3].ms.wall_min: expected …, found a text".
void check_field(const Json& at, std::string_view path, const std::string& place, Type type) {
  if (path.empty()) return expect(at, place, type);
  expect(at, place, Type::object);
  const std::size_t dot = std::min(path.find('.'), path.size());
  std::string_view name = path.substr(0, dot);
  const std::string_view rest = path.substr(std::min(dot + 1, path.size()));
  const bool each = name.ends_with("[]"), members = name.ends_with("{}"), optional = name.ends_with('?');
  name.remove_suffix(each || members ? 2 : optional ? 1 : 0);
  const std::string inner = (place.empty() ? "" : place + ".") + std::string(name);
  const Type outer = each ? Type::array : members || !rest.empty() ? Type::object : type;
  const auto member = at.find(name);
  if (optional && (member == at.end() || member->is_null())) return;
  if (member == at.end()) refuse(inner, outer, "no such member");
  expect(*member, inner, outer);
  if (each) {
    for (std::size_t i = 0; i < member->size(); ++i) {
      check_field((*member)[i], rest, inner + "[" + std::to_string(i) + "]", type);
    }
  } else if (members) {
    for (const auto& [key, value] : member->items()) check_field(value, rest, inner + "." + key, type);
  } else {
    check_field(*member, rest, inner, type);
  }
}

void check_fields(const Json& document, std::span<const Field> fields, const std::string& place = {}) {
  for (const Field& field : fields) check_field(document, field.path, place, field.type);
}

// --- A trace: the events that the page draws, with the members that it reads.

Json trace_content(const Json& document) {
  check_field(document, "traceEvents[]", "", Type::object);
  Json events = Json::array();
  const Json& all = document["traceEvents"];
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Json& event = all[i];
    const std::string place = "traceEvents[" + std::to_string(i) + "]";
    check_field(event, "ph", place, Type::text);
    if (event["ph"] == "X") {
      check_fields(event, span_fields, place);
      Json span;
      for (const char* name : {"ph", "name", "cat", "pid", "tid", "ts", "dur"}) {
        if (event.contains(name)) span[name] = event[name];
      }
      events.push_back(std::move(span));
    } else if (event["ph"] == "M") {
      check_field(event, "name", place, Type::text);
      const bool process = event["name"] == "process_name";
      if (!process && event["name"] != "thread_name") continue;
      check_fields(event, process ? std::span<const Field>(process_name_fields) : thread_name_fields, place);
      events.push_back(event);
    }
  }
  return {{"traceEvents", std::move(events)}};
}

// --- A tuning database: text, a record a line.

std::vector<std::string_view> parts(std::string_view text, char between) {
  std::vector<std::string_view> all;
  while (true) {
    const std::size_t end = text.find(between);
    all.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return all;
    text.remove_prefix(end + 1);
  }
}

std::optional<Json> record_of_line(std::string_view line) {
  const std::size_t last = line.rfind('\t');
  if (last == std::string_view::npos) return std::nullopt;
  if (line.substr(last + 1) != sha256(line.substr(0, last + 1)).hex().substr(0, 16)) return std::nullopt;
  const auto fields = parts(line.substr(0, last), '\t');
  if (fields.size() != 11) return std::nullopt;
  if (fields[3] != "measured" && fields[3] != "winner" && fields[3] != "rejected") return std::nullopt;
  std::vector<double> wall_ms;
  for (const std::string_view sample : parts(fields[8], ',')) {
    if (fields[8].empty()) break;
    std::uint64_t ns = 0;
    const auto [end, error] = std::from_chars(sample.data(), sample.data() + sample.size(), ns);
    if (error != std::errc() || end != sample.data() + sample.size()) return std::nullopt;
    wall_ms.push_back(static_cast<double>(ns) / 1e6);
  }
  std::ranges::sort(wall_ms);
  return Json{{"device", fields[0]},  {"spec", fields[1]},  {"variant", fields[2]},
              {"verdict", fields[3]}, {"wall_ms", wall_ms}, {"why", fields[10]}};
}

constexpr std::string_view tuning_form = "kiln-tuning ";

Result<Source> read_tuning(std::string_view text) {
  auto lines = parts(text, '\n');
  const std::string_view version = lines.front().substr(tuning_form.size());
  if (version != "1") {
    return unsupported("tuning database: format version '" + std::string(version) + "', expected '1'");
  }
  Json records = Json::array();
  std::uint64_t damaged = 0;
  for (const std::string_view line : std::span(lines).subspan(1)) {
    if (line.empty()) continue;
    if (auto record = record_of_line(line)) {
      records.push_back(std::move(*record));
    } else {
      ++damaged;
    }
  }
  if (records.empty() && damaged != 0) {
    return corrupt("tuning database: " + counted(damaged, "damaged line") + ", expected at least 1 valid record");
  }
  return Source{"tuning", {{"records", std::move(records)}, {"damaged", damaged}}};
}

// --- JSON documents and folders

Result<Source> read_document(Json document) {
  if (document.is_array()) document = Json{{"traceEvents", std::move(document)}};  // the trace format's other form
  const bool bench = document.contains("kind") && document["kind"] == "bench";
  const bool trace = !bench && document.contains("traceEvents");
  const bool run = !bench && !trace && document.contains("jobs") && document.contains("cache");
  const bool cache = !bench && !trace && !run && document.contains("memory_hits") && document.contains("directory");
  if (!bench && !trace && !run && !cache) {
    return invalid_argument("unknown kind of JSON document: " + std::string(expected_kinds));
  }
  const auto schema = document.find("schema");
  if (schema != document.end() && *schema != known_schema) {
    return unsupported("schema " + json_text(*schema) + ", expected " + std::to_string(known_schema));
  }
  if (bench) {
    if (const auto read = read_bench(document); !read) return corrupt(read.error().message);
    return Source{"bench", std::move(document)};
  }
  try {
    if (trace) return Source{"trace", trace_content(document)};
    if (run) {
      check_fields(document, run_fields);
      for (std::size_t i = 0; i < document["jobs"].size(); ++i) {
        const Json& job = document["jobs"][i];
        if (job["status"] == "ok" && job["runs"] != 0) check_fields(job, ran_fields, "jobs[" + std::to_string(i) + "]");
      }
      check_fields(document["cache"], count_fields, "cache");
      return Source{"run", std::move(document)};
    }
    check_fields(document, count_fields);
    check_fields(document, cache_fields);
    return Source{"cache", std::move(document)};
  } catch (const std::runtime_error& wrong) {
    return corrupt(wrong.what());
  }
}

Result<Source> read_folder(const std::filesystem::path& folder) {
  CacheConfig config;
  std::error_code error;
  config.directory = std::filesystem::absolute(folder, error);
  config.read_only = true;
  const auto stored = cache_inventory(config, Detail::programs);
  if (!stored) return stored.error();
  if (!stored->unread.ok()) return stored->unread;
  const auto totals = cache_totals(config);
  if (!totals) return totals.error();
  if (stored->devices.empty() && totals->processes == 0) {
    return invalid_argument("no program cache found: expected the folder set in [cache] directory");
  }
  Json content = cache_stats_json(config, *totals, *stored, true);
  content["programs_listed"] = cached_programs_json(*stored);
  return Source{"cache", std::move(content)};
}

Result<Source> read_content(std::string_view text) {
  if (text.starts_with(tuning_form)) return read_tuning(text);
  if (text.empty()) return corrupt("is empty: " + std::string(expected_kinds));
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  const bool looks_like_json = begin != std::string_view::npos && (text[begin] == '{' || text[begin] == '[');
  if (!looks_like_json) return invalid_argument("not recognised: " + std::string(expected_kinds));
  Json document = parse_json(text);
  if (document.is_discarded()) {
    return corrupt("truncated or damaged JSON: expected one complete document, found " + std::to_string(text.size()) +
                   " bytes");
  }
  return read_document(std::move(document));
}

Result<Json> read_one(const std::string& file) {
  Json entry{{"name", file}, {"label", nullptr}, {"kind", nullptr}, {"bytes", 0}, {"digest", nullptr}};
  std::error_code error;
  const bool folder = std::filesystem::is_directory(file, error);
  Result<Source> source = not_found("");
  if (folder) {
    source = read_folder(file);
  } else {
    const auto text = read_whole_file(file, most_bytes);
    if (!text) return invalid_argument(text.error().message);
    entry["bytes"] = text->size();
    entry["digest"] = sha256(*text).hex();
    source = read_content(*text);
  }
  if (!source) return source.error().within((folder ? "folder " : "file ") + file);
  entry["kind"] = source->kind;
  entry["content"] = std::move(source->content);
  return entry;
}

std::string last_parts(const std::filesystem::path& path, std::size_t count) {
  std::filesystem::path last;
  std::filesystem::path rest = path.has_filename() ? path : path.parent_path();
  for (; count > 0 && rest.has_filename(); --count, rest = rest.parent_path()) {
    last = last.empty() ? rest.filename() : rest.filename() / last;
  }
  return last.string();
}

}  // namespace

Result<Json> read_page_sources(const std::vector<std::string>& files) {
  Json sources = Json::array();
  for (const std::string& file : files) {
    auto source = read_one(file);
    if (!source) return source.error();
    sources.push_back(std::move(*source));
  }
  std::vector<std::string> labels;
  for (const std::string& file : files) labels.push_back(last_parts(file, 1));
  for (std::size_t count = 2; count <= 4; ++count) {
    std::map<std::string, int> seen;
    for (const std::string& label : labels) ++seen[label];
    for (std::size_t i = 0; i < files.size(); ++i) {
      if (seen[labels[i]] > 1) labels[i] = last_parts(files[i], count);
    }
  }
  for (std::size_t i = 0; i < files.size(); ++i) sources[i]["label"] = labels[i];
  return sources;
}

}  // namespace kiln::host::page

// `kiln report`: one self-contained page from runs, benches, tuning databases, caches and traces.

namespace kiln::host {
namespace {

constexpr std::uint64_t most_page_bytes = std::uint64_t{8} << 20;
constexpr std::string_view data_mark = "KILN_DATA";

// The page without its data, beside the running command.
Result<std::string> read_page() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path file = self.parent_path().parent_path() / "share/kiln/report/page.html";
  auto page = read_whole_file(file, most_page_bytes);
  if (!page) {
    return unavailable("report: " + page.error().message +
                       ". The page is built only if Chart.js is installed (Debian package libjs-chart.js)");
  }
  if (page->find(data_mark) == std::string::npos) {
    return corrupt("report: file " + file.string() + ": expected the word " + std::string(data_mark) +
                   " in the place of the data, found none");
  }
  return page;
}

// JSON in which no "<" stands: nothing in it can end the script element that holds it.
std::string script_text(const Json& json) {
  std::string text = json_text(json);
  for (std::size_t at = text.find('<'); at != std::string::npos; at = text.find('<', at))
    text.replace(at, 1, "\\u003c");
  return text;
}

}  // namespace

int report(const Options& options) {
  if (options.subjects.empty()) {
    complain("kiln report: no file given; usage: kiln report FILE… --output page.html");
    return exit_usage;
  }
  if (!options.output && isatty(STDOUT_FILENO) == 1) {
    complain("kiln report: standard output is a terminal, expected a file. Use --output FILE or redirect the output");
    return exit_usage;
  }
  auto html = read_page();
  if (!html) return complain_of(html.error());
  auto sources = page::read_page_sources(options.subjects);
  if (!sources) {
    complain(visible(sources.error().message));
    return exit_usage;
  }
  std::string title = "Kiln report";
  if (sources->size() == 1) title += ": " + (*sources)[0]["label"].get<std::string>();
  const Json data{{"title", options.title.empty() ? title : options.title},
                  {"made", "Made by kiln " + std::string(version) + " on " + human_date(std::time(nullptr)) + " from " +
                               counted(sources->size(), "source") + "."},
                  {"sources", std::move(*sources)}};
  html->replace(html->find(data_mark), data_mark.size(), script_text(data));
  const Status written = emit(*html, options.output);
  return written.ok() ? exit_done : complain_of(written);
}

}  // namespace kiln::host
