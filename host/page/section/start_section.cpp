#include "page/section/chart.hpp"
#include "page/section/sections.hpp"
#include "report/human.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace kiln::host::page {
namespace {

constexpr std::size_t most_jobs_drawn = 40;
constexpr std::array<std::pair<const char*, const char*>, 4> tiers = {{{"built", "programs built"},
                                                                       {"disk", "programs from disk"},
                                                                       {"memory", "programs from memory"},
                                                                       {"library", "prepared by a library"}}};
constexpr Ink tier_inks[] = {Ink::vermillion, Ink::blue, Ink::green, Ink::purple};

struct TierTime {
  std::uint64_t programs = 0;
  double ms = 0;
};

struct StartTime {
  double setup = 0, rest = 0;
  std::array<TierTime, tiers.size()> by_tier;
  double total() const {
    double sum = setup + rest;
    for (const TierTime& tier : by_tier) sum += tier.ms;
    return sum;
  }
};

std::size_t index_of_tier(const RunJob& job) {
  for (std::size_t i = 0; i < tiers.size(); ++i) {
    if (job.tier == tiers[i].first) return i;
  }
  return tiers.size();
}

// A job's own part of its first result: each counts the setup of the process, which is one.
double own_first(const RunFile& run, const RunJob& job) {
  return std::max(0.0, job.first_result - run.setup.value_or(0));
}

double rest_of(const RunFile& run, const RunJob& job) { return std::max(0.0, own_first(run, job) - job.build); }

StartTime start_of(const RunFile& run) {
  StartTime start;
  start.setup = run.setup.value_or(0);
  for (const RunJob& job : run.jobs) {
    if (!job.ran()) continue;
    const std::size_t tier = index_of_tier(job);
    if (tier < tiers.size()) {
      ++start.by_tier[tier].programs;
      start.by_tier[tier].ms += job.build;
    }
    start.rest += rest_of(run, job);
  }
  return start;
}

Figure starts_figure(const std::vector<Labelled<RunFile>>& runs) {
  Figure figure;
  figure.id = "start-by-tier";
  figure.title = "Time to every job's first result";
  figure.caption =
      "One bar a run: the process's setup once, then of every job the time until its program was ready, by the tier "
      "that answered, and the rest: inputs, first dispatch, first run, readback. Later runs and verification are not "
      "in it; jobs that ran at one time are added up all the same.";
  std::vector<std::string> categories;
  std::vector<Series> series(tiers.size() + 2);
  series[0] = {"setup of the process", Ink::grey, {}};
  for (std::size_t i = 0; i < tiers.size(); ++i) series[i + 1] = {tiers[i].second, tier_inks[i], {}};
  series.back() = {"inputs and first run", Ink::sky, {}};
  figure.table.columns = {{"Run", Align::left}, {"Setup, ms", Align::right}};
  for (const auto& [tier, words] : tiers) {
    figure.table.columns.push_back({std::string(tier) + ": jobs", Align::right});
    figure.table.columns.push_back({std::string(tier) + ": ms", Align::right});
  }
  figure.table.columns.push_back({"Inputs and first run, ms", Align::right});
  figure.table.columns.push_back({"All, ms", Align::right});
  for (const auto& [run, label] : runs) {
    const StartTime start = start_of(*run);
    categories.emplace_back(label);
    series[0].points.push_back({start.setup, {}, {}, {}});
    std::vector<std::string> row{std::string(label), run->setup ? legible(start.setup) : "not told"};
    for (std::size_t i = 0; i < tiers.size(); ++i) {
      const TierTime& tier = start.by_tier[i];
      series[i + 1].points.push_back({tier.ms, {}, {}, counted(tier.programs, "job")});
      row.push_back(std::to_string(tier.programs));
      row.push_back(legible(tier.ms));
    }
    series.back().points.push_back({start.rest, {}, {}, {}});
    row.push_back(legible(start.rest));
    row.push_back(legible(start.total()));
    figure.table.rows.push_back(std::move(row));
  }
  std::erase_if(series, [](const Series& one) {
    return std::ranges::all_of(one.points, [](const Point& point) { return point.value.value_or(0) == 0; });
  });
  figure.chart = bars_chart({"time, ms", "ms"}, categories, series, Stacking::stacked);
  return figure;
}

Figure jobs_figure(const RunFile& run, std::string_view label, std::size_t number) {
  Figure figure;
  figure.id = "start-jobs-" + std::to_string(number);
  figure.title = "Job by job: " + std::string(label);
  figure.table.columns = {{"Job", Align::left},
                          {"Device", Align::left},
                          {"Tier", Align::left},
                          {"Program, ms", Align::right},
                          {"Inputs, first run, ms", Align::right},
                          {"A later run, ms", Align::right}};
  std::vector<const RunJob*> jobs;
  for (const RunJob& job : run.jobs) {
    if (job.ran()) jobs.push_back(&job);
  }
  for (const RunJob* job : jobs) {
    figure.table.rows.push_back({job->name, job->device, job->tier.empty() ? "–" : job->tier, legible(job->build),
                                 legible(rest_of(run, *job)), legible(job->wall_median)});
  }
  figure.caption = "The time until each job's program was ready, and the rest of the way to its first result.";
  const std::size_t all = jobs.size();
  if (all > most_jobs_drawn) {
    std::ranges::stable_sort(jobs, std::ranges::greater{}, [&](const RunJob* job) { return own_first(run, *job); });
    jobs.resize(most_jobs_drawn);
    figure.caption +=
        " Of " + std::to_string(all) + " jobs the " + std::to_string(most_jobs_drawn) + " longest are drawn.";
  }
  std::vector<std::string> categories;
  std::vector<Series> series;
  for (std::size_t i = 0; i < tiers.size(); ++i) series.push_back({tiers[i].second, tier_inks[i], {}});
  series.push_back({"inputs and first run", Ink::sky, {}});
  for (const RunJob* job : jobs) {
    categories.push_back(job->name);
    for (std::size_t i = 0; i < tiers.size(); ++i) {
      const bool here = index_of_tier(*job) == i;
      series[i].points.push_back({here ? std::optional(job->build) : std::nullopt, {}, {}, {}});
    }
    series.back().points.push_back({rest_of(run, *job), {}, {}, {}});
  }
  std::erase_if(series, [](const Series& one) {
    return std::ranges::none_of(one.points, [](const Point& point) { return point.value.has_value(); });
  });
  figure.chart = bars_chart({"time, ms", "ms"}, categories, series, Stacking::stacked);
  return figure;
}

}  // namespace

std::optional<Section> start_section(const Inputs& inputs) {
  std::vector<Labelled<RunFile>> runs;
  for (const auto& run : of_kind<RunFile>(inputs)) {
    if (std::ranges::any_of(run.content->jobs, &RunJob::ran)) runs.push_back(run);
  }
  if (runs.empty()) return std::nullopt;
  Section section;
  section.id = "start";
  section.title = "Where the start went";
  section.lead =
      "A start is over when every job has its first output in host memory. What is built once is found again: in a "
      "later process on disk, in the same one in memory.";
  section.figures.push_back(starts_figure(runs));
  for (std::size_t i = 0; i < runs.size(); ++i) {
    section.figures.push_back(jobs_figure(*runs[i].content, runs[i].label, i + 1));
  }
  return section;
}

}  // namespace kiln::host::page
