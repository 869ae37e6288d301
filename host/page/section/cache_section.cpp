#include "page/section/chart.hpp"
#include "page/section/sections.hpp"
#include "report/human.hpp"

#include <algorithm>

namespace kiln::host::page {
namespace {

constexpr std::size_t most_programs_drawn = 25;

struct Counted {
  std::string label;
  const CacheCounts* counts;
};

std::uint64_t asked(const CacheCounts& counts) { return counts.memory_hits + counts.disk_hits + counts.misses; }

std::string rejected_words(const CacheCounts& counts) {
  std::string words;
  for (const auto& [reason, count] : counts.rejected) {
    if (count != 0) words += (words.empty() ? "" : ", ") + std::to_string(count) + " " + reason;
  }
  return words.empty() ? "0" : words;
}

Figure found_figure(const std::vector<Counted>& all) {
  Figure figure;
  figure.id = "cache-found";
  figure.title = "Where programs were found";
  figure.caption =
      "How often a program was asked for, by where it was found. A bar is one run, or all processes of one cache "
      "together. What a library prepares lasts as long as its process, so that a cache never holds it: it counts as "
      "not found.";
  figure.table.columns = {{"Source", Align::left},     {"Memory", Align::right},    {"Disk", Align::right},
                          {"Not found", Align::right}, {"Hit ratio", Align::right}, {"Built", Align::right},
                          {"Prepared", Align::right},  {"Rejected", Align::left}};
  std::vector<std::string> categories;
  std::vector<Series> series = {
      {"in memory", Ink::green, {}}, {"on disk", Ink::blue, {}}, {"not found", Ink::vermillion, {}}};
  for (const auto& [label, counts] : all) {
    categories.push_back(label);
    const std::uint64_t found[] = {counts->memory_hits, counts->disk_hits, counts->misses};
    const auto whole = static_cast<double>(asked(*counts));
    for (std::size_t i = 0; i < series.size(); ++i) {
      const auto part = static_cast<double>(found[i]);
      series[i].points.push_back({part, {}, {}, percent(part, whole)});
    }
    figure.table.rows.push_back(
        {label, std::to_string(counts->memory_hits), std::to_string(counts->disk_hits), std::to_string(counts->misses),
         percent(static_cast<double>(counts->memory_hits + counts->disk_hits), whole), std::to_string(counts->builds),
         std::to_string(counts->prepared), rejected_words(*counts)});
  }
  figure.chart = bars_chart({"times asked for", "times"}, categories, series, Stacking::stacked);
  return figure;
}

Figure saved_figure(const std::vector<Counted>& all) {
  Figure figure;
  figure.id = "cache-saved";
  figure.title = "Build time saved";
  figure.caption =
      "Of each program that was found, the time that its build took when it was made: what would have been waited for "
      "again. First dispatches, which drivers spend on machine code, are not among it.";
  figure.table.columns = {
      {"Source", Align::left}, {"Saved", Align::right}, {"Hits", Align::right}, {"Saved a hit, ms", Align::right}};
  std::vector<std::string> categories;
  std::vector<Series> series = {{"saved", Ink::blue, {}}};
  for (const auto& [label, counts] : all) {
    const std::uint64_t hits = counts->memory_hits + counts->disk_hits;
    categories.push_back(label);
    series[0].points.push_back({counts->saved_ms / 1e3, {}, {}, counted(hits, "hit")});
    figure.table.rows.push_back({label, counts->saved_ms != 0 ? human_ms(counts->saved_ms) : "0", std::to_string(hits),
                                 hits == 0 ? "–" : legible(counts->saved_ms / static_cast<double>(hits))});
  }
  figure.chart = bars_chart({"build time saved, s", "s"}, categories, series, Stacking::beside);
  return figure;
}

std::string name_of(const CacheFile::Program& program) {
  if (!program.shape.empty())
    return program.shape + (program.variant.empty() ? "" : " " + program.variant.substr(0, program.variant.find(':')));
  return program.label.empty() ? "no label" : program.label;
}

std::optional<Figure> programs_figure(const CacheFile& cache, std::string_view label, std::size_t number) {
  std::vector<const CacheFile::Program*> programs;
  for (const CacheFile::Program& program : cache.programs_listed) {
    if (program.build > 0) programs.push_back(&program);
  }
  if (programs.empty()) return std::nullopt;
  const auto cost = [](const CacheFile::Program* program) { return program->build + program->first_dispatch; };
  std::ranges::stable_sort(programs, std::ranges::greater{}, cost);
  Figure figure;
  figure.id = "cache-programs-" + std::to_string(number);
  figure.title = "What a program costs to make: " + std::string(label);
  figure.caption = "The build of each stored program, and its first dispatch where that was timed.";
  if (programs.size() > most_programs_drawn) {
    figure.caption += " Of " + std::to_string(programs.size()) + " programs the " +
                      std::to_string(most_programs_drawn) + " dearest are shown.";
    programs.resize(most_programs_drawn);
  }
  figure.table.columns = {{"Program", Align::left},    {"Variant", Align::left},
                          {"Build, ms", Align::right}, {"First dispatch, ms", Align::right},
                          {"Used", Align::right},      {"Size", Align::right}};
  std::vector<std::string> categories;
  std::vector<Series> series = {{"build", Ink::vermillion, {}}, {"first dispatch", Ink::orange, {}}};
  for (const CacheFile::Program* program : programs) {
    categories.push_back(name_of(*program));
    series[0].points.push_back({program->build, {}, {}, counted(program->times_used, "use")});
    series[1].points.push_back({program->first_dispatch, {}, {}, {}});
    figure.table.rows.push_back({name_of(*program), program->variant.empty() ? "–" : program->variant,
                                 legible(program->build),
                                 program->first_dispatch > 0 ? legible(program->first_dispatch) : "–",
                                 std::to_string(program->times_used), human_size(program->bytes)});
  }
  figure.chart = bars_chart({"time, ms", "ms"}, categories, series, Stacking::stacked);
  return figure;
}

Figure devices_figure(const std::vector<Labelled<CacheFile>>& caches) {
  Figure figure;
  figure.id = "cache-devices";
  figure.title = "What is stored";
  figure.caption = "Programs by the device and driver that they were built for.";
  figure.table.columns = {{"Cache", Align::left},
                          {"Device", Align::left},
                          {"Driver", Align::left},
                          {"Programs", Align::right},
                          {"Size", Align::right}};
  for (const auto& [cache, label] : caches) {
    if (cache->devices.empty()) {
      figure.table.rows.push_back({std::string(label), "no program", "–", "0", human_size(0)});
    }
    for (const CacheFile::Device& device : cache->devices) {
      figure.table.rows.push_back({std::string(label), device.name, device.driver.empty() ? "–" : device.driver,
                                   std::to_string(device.programs), human_size(device.bytes)});
    }
  }
  return figure;
}

}  // namespace

std::optional<Section> cache_section(const Inputs& inputs) {
  std::vector<Counted> all;
  for (const auto& [run, label] : of_kind<RunFile>(inputs)) all.push_back({std::string(label), &run->cache});
  const auto caches = of_kind<CacheFile>(inputs);
  for (const auto& [cache, label] : caches) {
    all.push_back({std::string(label) + ", " + std::to_string(cache->processes) +
                       (cache->processes == 1 ? " process" : " processes"),
                   &cache->counts});
  }
  std::erase_if(all, [](const Counted& one) { return asked(*one.counts) == 0; });
  if (all.empty() && caches.empty()) return std::nullopt;
  Section section;
  section.id = "cache";
  section.title = "The program cache";
  section.lead = "What was asked for, where it was found, and the build time that was not spent again.";
  if (!all.empty()) {
    section.figures.push_back(found_figure(all));
    section.figures.push_back(saved_figure(all));
  }
  for (std::size_t i = 0; i < caches.size(); ++i) {
    if (auto figure = programs_figure(*caches[i].content, caches[i].label, i + 1))
      section.figures.push_back(std::move(*figure));
  }
  if (!caches.empty()) section.figures.push_back(devices_figure(caches));
  return section;
}

}  // namespace kiln::host::page
