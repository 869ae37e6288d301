#include "page/section/chart.hpp"
#include "page/section/sections.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace kiln::host::page {
namespace {

constexpr std::size_t most_layers_drawn = 60;

struct OnDevice {
  std::string name;                                         // of the device, and of the run where several have it
  std::vector<std::pair<const RunJob*, std::size_t>> jobs;  // with the layer's place
};

struct Compared {
  std::vector<std::string> layers;  // in the order of their first appearance
  std::vector<OnDevice> devices;
};

Compared compare(const std::vector<Labelled<RunFile>>& runs) {
  Compared all;
  std::map<std::string, std::set<std::string_view>> runs_of_device;
  for (const auto& [run, label] : runs) {
    for (const RunJob& job : run->jobs) {
      if (job.ran()) runs_of_device[job.device].insert(label);
    }
  }
  for (const auto& [run, label] : runs) {
    for (const RunJob& job : run->jobs) {
      if (!job.ran()) continue;
      const auto layer = std::ranges::find(all.layers, job.name);
      const auto place = static_cast<std::size_t>(layer - all.layers.begin());
      if (layer == all.layers.end()) all.layers.push_back(job.name);
      std::string name = job.device;
      if (runs_of_device[job.device].size() > 1) name += " (" + std::string(label) + ")";
      auto device = std::ranges::find(all.devices, name, &OnDevice::name);
      if (device == all.devices.end()) device = all.devices.insert(device, {name, {}});
      device->jobs.emplace_back(&job, place);
    }
  }
  return all;
}

Series series_of(const OnDevice& device, std::size_t layers) {
  Series series{device.name, Ink::blue, std::vector<Point>(layers)};
  for (const auto& [job, place] : device.jobs) {
    if (place >= layers) continue;
    series.points[place] = {job->wall_median, job->wall_min, job->wall_max,
                            (job->gflops > 0 ? legible(job->gflops) + " GFLOP/s, " : "") + std::to_string(job->runs) +
                                (job->runs == 1 ? " run" : " runs")};
  }
  return series;
}

std::string fastest_words(const Compared& all, std::size_t place) {
  const RunJob* best = nullptr;
  std::string name;
  for (const OnDevice& device : all.devices) {
    for (const auto& [job, at] : device.jobs) {
      if (at == place && (best == nullptr || job->wall_median < best->wall_median)) best = job, name = device.name;
    }
  }
  return name;
}

}  // namespace

std::optional<Section> devices_section(const Inputs& inputs) {
  const auto runs = of_kind<RunFile>(inputs);
  const Compared all = compare(runs);
  if (all.layers.empty()) return std::nullopt;
  Section section;
  section.id = "devices";
  section.title = "Devices, job by job";
  section.lead =
      "The same work on each device that the runs used: from the request to the output in host memory, weights being "
      "there.";
  Figure figure;
  figure.id = "devices-time";
  figure.title = "Time of a run";
  figure.caption =
      "The point is the median, the bar beside it reaches from the shortest to the longest run; the longest is often "
      "the first, which compiles on some drivers. The scale is logarithmic: equal distances are equal ratios. Less is "
      "better.";
  const std::size_t drawn = std::min(all.layers.size(), most_layers_drawn);
  if (drawn < all.layers.size()) {
    figure.caption +=
        " The first " + std::to_string(drawn) + " of " + std::to_string(all.layers.size()) + " jobs are drawn.";
  }
  std::vector<Series> series;
  for (const OnDevice& device : all.devices) series.push_back(series_of(device, drawn));
  figure.chart = rows_chart({"time of a run, ms", "ms", Scale::logarithmic, {}, {}},
                            {all.layers.begin(), all.layers.begin() + static_cast<std::ptrdiff_t>(drawn)}, series);
  figure.table.columns = {{"Job", Align::left}};
  for (const OnDevice& device : all.devices) {
    figure.table.columns.push_back({device.name + ", ms", Align::right});
    figure.table.columns.push_back({"least to most", Align::right});
    figure.table.columns.push_back({"GFLOP/s", Align::right});
  }
  if (all.devices.size() > 1) figure.table.columns.push_back({"Fastest", Align::left});
  for (std::size_t place = 0; place < all.layers.size(); ++place) {
    std::vector<std::string> row{all.layers[place]};
    for (const OnDevice& device : all.devices) {
      const auto found = std::ranges::find(device.jobs, place, [](const auto& one) { return one.second; });
      if (found == device.jobs.end()) {
        row.insert(row.end(), {"–", "–", "–"});
        continue;
      }
      const RunJob& job = *found->first;
      row.push_back(legible(job.wall_median));
      row.push_back(legible(job.wall_min) + " to " + legible(job.wall_max));
      row.push_back(job.gflops > 0 ? legible(job.gflops) : "–");
    }
    if (all.devices.size() > 1) row.push_back(fastest_words(all, place));
    figure.table.rows.push_back(std::move(row));
  }
  section.figures.push_back(std::move(figure));
  return section;
}

}  // namespace kiln::host::page
