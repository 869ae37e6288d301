#include "verbs/bench_file.hpp"

#include "text_table.hpp"

#include <kiln/regular_file.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <stdexcept>

namespace kiln::host {
namespace {

constexpr std::uint64_t most_bytes = 64 << 20;

// A place in a document, which every complaint names.
class Place {
 public:
  Place(const Json& value, std::string name) : value_(value), name_(std::move(name)) {}

  [[noreturn]] void refuse(const std::string& expected) const {
    std::string found = json_text(value_);
    if (found.size() > 40) found = found.substr(0, 37) + "...";
    throw std::runtime_error((name_.empty() ? "the document" : name_) + ": expected " + expected + ", found " + found);
  }
  Place at(const std::string& key) const {
    if (!value_.is_object()) refuse("an object");
    const auto member = value_.find(key);
    const std::string name = name_.empty() ? key : name_ + "." + key;
    if (member == value_.end()) throw std::runtime_error(name + ": is missing");
    return {*member, name};
  }
  bool is_null() const { return value_.is_null(); }
  std::string text() const {
    if (!value_.is_string()) refuse("a string");
    return value_.get<std::string>();
  }
  double number() const {
    if (!value_.is_number() || !std::isfinite(value_.get<double>())) refuse("a number");
    return value_.get<double>();
  }
  std::uint64_t count() const {
    if (!value_.is_number_unsigned()) refuse("an integer of at least 0");
    return value_.get<std::uint64_t>();
  }
  bool truth() const {
    if (!value_.is_boolean()) refuse("true or false");
    return value_.get<bool>();
  }
  std::optional<std::string> text_or_null() const { return is_null() ? std::nullopt : std::optional(text()); }
  std::vector<Place> elements() const {
    if (!value_.is_array()) refuse("an array");
    std::vector<Place> all;
    for (std::size_t i = 0; i < value_.size(); ++i) all.push_back({value_[i], name_ + "[" + std::to_string(i) + "]"});
    return all;
  }
  std::map<std::string, std::string> texts() const {
    if (!value_.is_object()) refuse("an object");
    std::map<std::string, std::string> all;
    for (const auto& [key, value] : value_.items()) all[key] = Place(value, name_ + "." + key).text();
    return all;
  }

 private:
  const Json& value_;
  std::string name_;
};

Spread spread_at(const Place& place) {
  Spread spread{place.at("median").number(), place.at("low").number(), place.at("high").number(), 0};
  if (spread.low > spread.median || spread.median > spread.high) place.refuse("low <= median <= high");
  return spread;
}

Spread samples_at(const Place& place) {
  Spread spread = spread_at(place);
  spread.samples = place.at("samples").count();
  if (spread.samples == 0) place.refuse("at least 1 sample");
  return spread;
}

BenchFigure figure_at(const Place& place) {
  BenchFigure figure;
  figure.id = place.at("id").text();
  figure.name = place.at("name").text();
  figure.unit = place.at("unit").text();
  const std::string better = place.at("better").text();
  if (better != "less" && better != "more") place.at("better").refuse("\"less\" or \"more\"");
  figure.more_is_better = better == "more";
  figure.kiln = samples_at(place.at("kiln"));
  if (const Place peer = place.at("peer"); !peer.is_null()) {
    figure.peer_name = peer.at("name").text();
    figure.peer = samples_at(peer);
    figure.ratio = spread_at(place.at("ratio"));
  }
  if (const Place target = place.at("target"); !target.is_null()) {
    figure.target = BenchTarget{target.at("text").text(), target.at("value").number(), target.at("met").truth()};
  }
  if (const Place verified = place.at("verified"); !verified.is_null()) figure.verified = verified.truth();
  figure.stable = place.at("stable").truth();
  figure.group = place.at("group").text_or_null();
  figure.device = place.at("device").text_or_null();
  return figure;
}

std::vector<BenchFigure> figures_at(const Place& place) {
  std::vector<BenchFigure> figures;
  for (const Place& each : place.elements()) figures.push_back(figure_at(each));
  std::vector<std::string> identities;
  for (const BenchFigure& figure : figures) identities.push_back(figure.identity());
  std::ranges::sort(identities);
  if (const auto twice = std::ranges::adjacent_find(identities); twice != identities.end()) {
    place.refuse("each figure once, but '" + *twice + "' appears twice");
  }
  return figures;
}

BenchMachine machine_at(const Place& place) {
  BenchMachine machine;
  machine.cpu = place.at("cpu").text();
  machine.kernel = place.at("kernel").text();
  machine.os = place.at("os").text();
  machine.cores = place.at("cores").count();
  machine.memory_bytes = place.at("memory_bytes").count();
  machine.quiet = place.at("quiet").truth();
  machine.load_before = place.at("load_before").number();
  machine.noise_percent = place.at("noise_percent").number();
  machine.versions = place.at("versions").texts();
  return machine;
}

BenchFile bench_at(const Place& place) {
  BenchFile file;
  file.kiln = place.at("kiln").text();
  file.commit = place.at("commit").text_or_null();
  file.started = place.at("started").text();
  file.seconds = place.at("seconds").number();
  file.machine = machine_at(place.at("machine"));
  for (const Place& area : place.at("areas").elements()) {
    file.areas.push_back({area.at("name").text(), area.at("title").text(), area.at("seconds").number(),
                          area.at("skipped").text_or_null(), figures_at(area.at("figures"))});
  }
  return file;
}

ProgramFigures program_at(const Place& place) {
  return {figures_at(place.at("figures")), place.at("versions").texts(), place.at("skipped").text_or_null()};
}

template <class Value>
Result<Value> read_document(const Json& json, const std::string& kind, Value (*value_at)(const Place&)) {
  try {
    const Place document(json, "");
    if (document.at("schema").count() != 1) document.at("schema").refuse("1");
    if (document.at("kind").text() != kind) document.at("kind").refuse("\"" + kind + "\"");
    return value_at(document);
  } catch (const std::runtime_error& wrong) {
    return invalid_argument(wrong.what());
  }
}

template <class Value>
Result<Value> read_kind(const std::filesystem::path& path, const std::string& kind, Value (*value_at)(const Place&)) {
  const Result<std::string> text = read_whole_file(path, most_bytes);
  if (!text && text.error().code == StatusCode::not_found) return not_found(path.string() + ": no such file");
  if (!text) return text.error();
  const Json json = parse_json(*text);
  if (json.is_discarded()) return invalid_argument(path.string() + ": not a JSON document");
  auto value = read_document(json, kind, value_at);
  if (!value) return invalid_argument(path.string() + ": " + value.error().message);
  return value;
}

Json spread_json(const Spread& spread) {
  Json json{{"median", spread.median}, {"low", spread.low}, {"high", spread.high}};
  if (spread.samples != 0) json["samples"] = spread.samples;
  return json;
}

Json or_null(const std::optional<std::string>& text) { return text ? Json(*text) : Json(nullptr); }

Json figure_json(const BenchFigure& figure) {
  Json json{{"id", figure.id},
            {"name", figure.name},
            {"unit", figure.unit},
            {"better", figure.more_is_better ? "more" : "less"},
            {"kiln", spread_json(figure.kiln)},
            {"peer", nullptr},
            {"ratio", nullptr},
            {"target", nullptr},
            {"verified", figure.verified ? Json(*figure.verified) : Json(nullptr)},
            {"stable", figure.stable},
            {"group", or_null(figure.group)},
            {"device", or_null(figure.device)}};
  if (figure.peer_name) {
    json["peer"] = {{"name", *figure.peer_name}};
    json["peer"].update(spread_json(figure.peer));
    json["ratio"] = spread_json(figure.ratio);
  }
  if (figure.target) {
    json["target"] = {{"text", figure.target->text}, {"value", figure.target->value}, {"met", figure.target->met}};
  }
  return json;
}

}  // namespace

std::string BenchFigure::identity() const {
  return id + (group ? "@" + *group : "") + (device ? " on " + *device : "");
}

std::string bench_file_text(const BenchFile& file) {
  const BenchMachine& machine = file.machine;
  Json head{{"schema", 1},
            {"kind", "bench"},
            {"kiln", file.kiln},
            {"commit", or_null(file.commit)},
            {"started", file.started},
            {"seconds", file.seconds},
            {"machine",
             {{"cpu", machine.cpu},
              {"cores", machine.cores},
              {"memory_bytes", machine.memory_bytes},
              {"kernel", machine.kernel},
              {"os", machine.os},
              {"quiet", machine.quiet},
              {"load_before", machine.load_before},
              {"noise_percent", machine.noise_percent},
              {"versions", Json::object()}}}};
  for (const auto& [of, what] : machine.versions) head["machine"]["versions"][of] = what;
  std::string text = json_text(head, 2);
  text.resize(text.size() - std::string_view("\n}").size());
  text += ",\n  \"areas\": [";
  std::string_view before_area = "\n    ";
  for (const MeasuredArea& area : file.areas) {
    text += before_area;
    text += json_text(
        {{"name", area.name}, {"title", area.title}, {"seconds", area.seconds}, {"skipped", or_null(area.skipped)}});
    text.back() = ',';  // in place of the closing brace
    text += "\"figures\":[";
    std::string_view before_figure = "\n      ";
    for (const BenchFigure& figure : area.figures) {
      text += before_figure;
      text += json_text(figure_json(figure));
      before_figure = ",\n      ";
    }
    text += "]}";
    before_area = ",\n    ";
  }
  return text + "]\n}\n";
}

Result<BenchFile> read_bench(const Json& document) { return read_document<BenchFile>(document, "bench", bench_at); }

Result<BenchFile> read_bench_file(const std::filesystem::path& path) {
  return read_kind<BenchFile>(path, "bench", bench_at);
}

Result<ProgramFigures> read_program_figures(const std::filesystem::path& path) {
  return read_kind<ProgramFigures>(path, "figures", program_at);
}

namespace {

// Three digits, but every digit of a whole number.
std::string figure_number(double value) {
  char text[32];
  const bool whole = value == static_cast<double>(static_cast<std::int64_t>(value)) && value < 1e9 && value > -1e9;
  std::snprintf(text, sizeof text, whole ? "%.0f" : value >= 100 ? "%.0f" : "%.3g", value);
  return text;
}

std::string target_text(const BenchFigure& figure) {
  return figure.target ? figure.target->text + (figure.target->met ? ": met" : ": missed") : "";
}

std::string outputs_text(const BenchFigure& figure) {
  return !figure.verified ? "" : *figure.verified ? "verified" : "WRONG";
}

std::string name_text(const BenchFigure& figure) {
  return figure.name + (figure.group ? ", " + *figure.group : "") + (figure.device ? " [" + *figure.device + "]" : "");
}

std::string machine_text(const BenchMachine& machine) {
  std::string text =
      machine.cpu + ", " + counted(machine.cores, "core") + ", " + human_size(machine.memory_bytes) + ", " + machine.os;
  for (const auto& [of, what] : machine.versions) text += ", " + of + " " + what;
  return text;
}

std::string quiet_text(const BenchMachine& machine) {
  return std::string(machine.quiet ? "quiet" : "NOT quiet: times are not reliable") + " (load " +
         figure_number(machine.load_before) + " before, noise " + figure_number(machine.noise_percent) + " %)";
}

// In a cell of a table.
std::string cell(std::string text) {
  for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) text.insert(at, "\\");
  return visible(text);
}

std::string markdown_row(const BenchFigure& figure) {
  std::string row = "| " + cell(name_text(figure)) + " | " + cell(spread_text(figure.kiln, figure.unit)) + " | ";
  if (figure.peer_name) {
    row += cell(*figure.peer_name) + ": " + cell(spread_text(figure.peer, figure.unit)) + " | " +
           spread_text(figure.ratio, "x") + " | ";
  } else {
    row += "| | ";
  }
  if (figure.target) row += cell(figure.target->text) + (figure.target->met ? " met" : " **missed**");
  if (figure.verified == false) row += " **WRONG OUTPUT**";
  return row + " |\n";
}

bool is_named(const BenchFigure& figure, const std::string& id) {
  std::string with_group = figure.id + "@" + figure.group.value_or("");
  if (figure.id == id || with_group == id) return true;
  std::ranges::replace(with_group, ' ', '_');
  return with_group == id;
}

}  // namespace

std::string spread_text(const Spread& spread, const std::string& unit) {
  std::string text = figure_number(spread.median);
  if (unit == "x") {
    text += "x";
  } else if (!unit.empty()) {
    text += " " + unit;
  }
  const std::string low = figure_number(spread.low), high = figure_number(spread.high);
  return low == high ? text : text + " (" + low + " to " + high + ")";
}

std::string bench_text(const BenchFile& file) {
  std::string text = visible(machine_text(file.machine)) + "\n" + quiet_text(file.machine) + "\n";
  for (const MeasuredArea& area : file.areas) {
    text += "\n" + visible(area.title) + " (" + visible(area.name) + ")\n";
    if (!area.figures.empty()) {
      TextTable table({{"", Align::left},
                       {"Kiln", Align::left},
                       {"peer", Align::left},
                       {"ratio, above 1 Kiln is better", Align::left},
                       {"target", Align::left},
                       {"outputs", Align::left}});
      for (const BenchFigure& figure : area.figures) {
        table.add({visible(name_text(figure)), visible(spread_text(figure.kiln, figure.unit)),
                   figure.peer_name ? visible(*figure.peer_name + ": " + spread_text(figure.peer, figure.unit)) : "",
                   figure.peer_name ? spread_text(figure.ratio, "x") : "", visible(target_text(figure)),
                   outputs_text(figure)});
      }
      text += table.text();
    }
    if (area.skipped) text += "not measured: " + visible(*area.skipped) + "\n";
  }
  return text;
}

Result<std::string> bench_markdown(const BenchFile& file, std::span<const std::string> ids) {
  std::string text = "| | Kiln | peer | ratio | target |\n|---|---|---|---|---|\n";
  for (const std::string& id : ids) {
    bool found = false;
    for (const MeasuredArea& area : file.areas) {
      for (const BenchFigure& figure : area.figures) {
        if (!is_named(figure, id)) continue;
        text += markdown_row(figure);
        found = true;
      }
    }
    if (!found) return not_found("figure '" + id + "': not found");
  }
  if (ids.empty()) {
    for (const MeasuredArea& area : file.areas) {
      for (const BenchFigure& figure : area.figures) text += markdown_row(figure);
    }
  }
  return text + "\nMedians and quartiles; ratio: above 1 Kiln is better. Kiln " + visible(file.kiln) + ", " +
         visible(file.started.substr(0, 10)) + ": " + visible(machine_text(file.machine)) + "; the machine was " +
         quiet_text(file.machine) + ".\n";
}

}  // namespace kiln::host
