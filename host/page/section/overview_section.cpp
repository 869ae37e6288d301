#include "page/section/sections.hpp"
#include "report/human.hpp"

#include <algorithm>

namespace kiln::host::page {
namespace {

Tile run_tile(const RunFile& run, std::string_view label) {
  const auto failed =
      static_cast<std::uint64_t>(std::ranges::count_if(run.jobs, [](const RunJob& job) { return job.status != "ok"; }));
  const auto verified = static_cast<std::uint64_t>(
      std::ranges::count_if(run.jobs, [](const RunJob& job) { return job.verified == true; }));
  std::string note = human_ms(run.total) + " in all, " + std::to_string(verified) + " verified";
  if (failed != 0) note += ", " + std::to_string(failed) + " failed";
  return {std::string(label), counted(run.jobs.size(), "job"), std::move(note)};
}

Tile cache_tile(const CacheFile& cache, std::string_view label) {
  const CacheCounts& counts = cache.counts;
  const std::uint64_t hits = counts.memory_hits + counts.disk_hits;
  return {std::string(label), percent(static_cast<double>(hits), static_cast<double>(hits + counts.misses)) + " found",
          counted(cache.programs, "program") + ", " + human_ms(counts.saved_ms) + " of building saved"};
}

Tile tuning_tile(const TuningFile& tuning, std::string_view label) {
  const auto winners = static_cast<std::uint64_t>(
      std::ranges::count_if(tuning.records, [](const TuningRecord& record) { return record.verdict == "winner"; }));
  return {std::string(label), counted(tuning.records.size(), "variant"), counted(winners, "winner")};
}

Tile trace_tile(const TraceFile& trace, std::string_view label) {
  return {std::string(label), counted(trace.spans.size(), "span"), counted(trace.lanes.size(), "lane")};
}

struct BenchSums {
  std::uint64_t figures = 0, with_peer = 0, better = 0, targets = 0, met = 0, wrong = 0;
};

BenchSums sums_of(const BenchFile& bench) {
  BenchSums sums;
  for (const MeasuredArea& area : bench.areas) {
    for (const BenchFigure& figure : area.figures) {
      ++sums.figures;
      sums.with_peer += figure.peer_name ? 1 : 0;
      sums.better += figure.peer_name && figure.ratio.median > 1 ? 1 : 0;
      sums.targets += figure.target ? 1 : 0;
      sums.met += figure.target && figure.target->met ? 1 : 0;
      sums.wrong += figure.verified == false ? 1 : 0;
    }
  }
  return sums;
}

void add_bench_tiles(const BenchFile& bench, std::string_view label, std::vector<Tile>& tiles) {
  const BenchSums sums = sums_of(bench);
  tiles.push_back({std::string(label), counted(sums.figures, "figure"),
                   human_ms(bench.seconds * 1e3) + ", begun " + bench.started});
  if (sums.with_peer != 0) {
    tiles.push_back({"better than the peer", std::to_string(sums.better) + " of " + std::to_string(sums.with_peer),
                     "by the median of the ratio"});
  }
  if (sums.targets != 0) {
    tiles.push_back({"targets met", std::to_string(sums.met) + " of " + std::to_string(sums.targets),
                     sums.met == sums.targets ? "none was missed" : "those that were missed stand below"});
  }
  const BenchMachine& machine = bench.machine;
  tiles.push_back({"machine", machine.quiet ? "quiet" : "not quiet",
                   "load " + legible(machine.load_before) + " before, noise " + legible(machine.noise_percent) + " %" +
                       (sums.wrong == 0 ? "" : ", " + counted(sums.wrong, "wrong result"))});
}

std::string short_commit(const std::string& commit) {
  return commit.substr(0, 12) + (commit.ends_with("+changes") ? " with changes" : "");
}

Figure machine_figure(const BenchFile& bench, std::string_view label, std::size_t number) {
  Figure figure;
  figure.id = "machine-" + std::to_string(number);
  figure.title = "Machine and versions: " + std::string(label);
  figure.table.columns = {{"What", Align::left}, {"Which", Align::left}};
  auto& rows = figure.table.rows;
  const BenchMachine& machine = bench.machine;
  rows = {{"processor", machine.cpu + ", " + counted(machine.cores, "core")},
          {"memory", human_size(machine.memory_bytes)},
          {"system", machine.os + ", " + machine.kernel},
          {"kiln", bench.kiln + (bench.commit ? ", commit " + short_commit(*bench.commit) : "")}};
  for (const auto& [name, version] : machine.versions) rows.push_back({name, version.empty() ? "not there" : version});
  return figure;
}

std::optional<Figure> missed_figure(const std::vector<Labelled<BenchFile>>& benches) {
  Figure figure;
  figure.id = "missed";
  figure.title = "What fell short";
  figure.caption = "Targets that were missed, figures whose output was wrong, and areas that were not measured.";
  figure.table.columns = {
      {"Figure", Align::left}, {"Target", Align::left}, {"Kiln", Align::right}, {"Ratio", Align::right}};
  for (const auto& [bench, label] : benches) {
    for (const MeasuredArea& area : bench->areas) {
      if (area.skipped) figure.table.rows.push_back({area.title, "not measured: " + *area.skipped, "–", "–"});
      for (const BenchFigure& one : area.figures) {
        const bool missed = one.target && !one.target->met;
        if (!missed && one.verified != false) continue;
        figure.table.rows.push_back({area.title + ": " + (one.group ? *one.group + ": " : "") + one.name,
                                     missed ? one.target->text : "a right result", with_unit(one.kiln.median, one.unit),
                                     one.peer_name ? legible(one.ratio.median) + " ×" : "–"});
      }
    }
  }
  if (figure.table.rows.empty()) return std::nullopt;
  return figure;
}

std::optional<Figure> failed_figure(const Inputs& inputs) {
  Figure figure;
  figure.id = "failed";
  figure.title = "Jobs that failed";
  figure.table.columns = {{"Job", Align::left}, {"Run", Align::left}, {"Status", Align::left}, {"Why", Align::left}};
  for (const auto& [run, label] : of_kind<RunFile>(inputs)) {
    for (const RunJob& job : run->jobs) {
      if (job.status != "ok") figure.table.rows.push_back({job.name, std::string(label), job.status, job.error});
    }
  }
  if (figure.table.rows.empty()) return std::nullopt;
  return figure;
}

}  // namespace

std::optional<Section> overview_section(const Inputs& inputs) {
  Section section;
  section.id = "overview";
  section.title = "Overview";
  const auto benches = of_kind<BenchFile>(inputs);
  for (const auto& [bench, label] : benches) add_bench_tiles(*bench, label, section.tiles);
  for (const auto& [run, label] : of_kind<RunFile>(inputs)) section.tiles.push_back(run_tile(*run, label));
  for (const auto& [cache, label] : of_kind<CacheFile>(inputs)) section.tiles.push_back(cache_tile(*cache, label));
  for (const auto& [tuning, label] : of_kind<TuningFile>(inputs)) section.tiles.push_back(tuning_tile(*tuning, label));
  for (const auto& [trace, label] : of_kind<TraceFile>(inputs)) section.tiles.push_back(trace_tile(*trace, label));
  if (auto figure = failed_figure(inputs)) section.figures.push_back(std::move(*figure));
  if (auto figure = missed_figure(benches)) section.figures.push_back(std::move(*figure));
  for (std::size_t i = 0; i < benches.size(); ++i) {
    section.figures.push_back(machine_figure(*benches[i].content, benches[i].label, i + 1));
  }
  return section;
}

}  // namespace kiln::host::page
