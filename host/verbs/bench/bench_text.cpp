#include "verbs/bench/bench_text.hpp"

#include "report/human.hpp"
#include "report/text_table.hpp"

#include <algorithm>
#include <cstdio>

namespace kiln::host {
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
  return std::string(machine.quiet ? "quiet" : "NOT quiet: times are not to be trusted") + " (load " +
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
    if (!found) return not_found("figure '" + id + "': the file has none of that id");
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
