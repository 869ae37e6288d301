#include "page/section/chart.hpp"
#include "page/section/sections.hpp"

#include <algorithm>
#include <map>

namespace kiln::host::page {
namespace {

struct Rated {
  const RunJob* job;
  double intensity, gflops;
};

// Each job once, at its highest rate.
std::map<std::string, std::vector<Rated>> rated_by_device(const Inputs& inputs) {
  std::map<std::string, std::vector<Rated>> devices;
  for (const auto& [run, label] : of_kind<RunFile>(inputs)) {
    for (const RunJob& job : run->jobs) {
      if (!job.ran() || !job.flops || !job.bytes || *job.flops <= 0 || *job.bytes <= 0 || job.gflops <= 0) continue;
      std::vector<Rated>& rated = devices[job.device];
      const Rated one{&job, *job.flops / *job.bytes, job.gflops};
      const auto same = std::ranges::find_if(
          rated, [&](const Rated& other) { return other.job->name == job.name && other.intensity == one.intensity; });
      if (same == rated.end()) {
        rated.push_back(one);
      } else if (same->gflops < one.gflops) {
        *same = one;
      }
    }
  }
  return devices;
}

double roof_of(const std::vector<Rated>& jobs) {
  double roof = 0;
  for (const Rated& rated : jobs) roof = std::max(roof, rated.job->roof_gflops.value_or(0));
  return roof;
}

// GB/s; what the memory can do at least.
double reached_bandwidth(const std::vector<Rated>& jobs) {
  double most = 0;
  for (const Rated& rated : jobs) most = std::max(most, rated.gflops / rated.intensity);
  return most;
}

Figure roofline_figure(const std::string& device, const std::vector<Rated>& jobs, std::size_t number) {
  const double roof = roof_of(jobs);
  const double bandwidth = reached_bandwidth(jobs);
  const auto [least, most] = std::ranges::minmax(jobs, {}, &Rated::intensity);
  const double left = least.intensity / 2;
  const double right = most.intensity * 2;
  Figure figure;
  figure.id = "roofline-" + std::to_string(number);
  figure.title = "Rates on " + device;
  figure.caption =
      "Direct FLOPs by the bytes of inputs, constants and outputs, each moved once; of a job that several runs have, "
      "the fastest. The slope is the highest rate in bytes that one of these jobs reached, so that memory can do at "
      "least that; it is no bound.";
  figure.caption += roof > 0
                        ? " The flat line is the roof of " + legible(roof) +
                              " GFLOP/s above which a rate would be an error: cores × lanes × two units × the highest "
                              "clock there is, so that no real run comes near it."
                        : " The device tells nothing that a roof of computing could be derived from.";
  PlaneSeries points{"jobs", Ink::blue, false, {}};
  figure.table.columns = {{"Job", Align::left},   {"FLOP a byte", Align::right}, {"GFLOP/s", Align::right},
                          {"GB/s", Align::right}, {"Of the roof", Align::right}, {"Variant", Align::left}};
  for (const Rated& rated : jobs) {
    points.points.push_back({rated.intensity, rated.gflops, rated.job->name});
    figure.table.rows.push_back({rated.job->name, legible(rated.intensity), legible(rated.gflops),
                                 legible(rated.gflops / rated.intensity), percent(rated.gflops, roof),
                                 rated.job->variant.empty() ? "–" : rated.job->variant});
  }
  std::vector<PlaneSeries> series{std::move(points)};
  const double bend = roof > 0 ? std::clamp(roof / bandwidth, left, right) : right;
  series.push_back({"highest rate of bytes, " + legible(bandwidth) + " GB/s",
                    Ink::vermillion,
                    true,
                    {{left, left * bandwidth, ""}, {bend, bend * bandwidth, ""}}});
  if (roof > 0) {
    series.push_back({"roof, " + legible(roof) + " GFLOP/s", Ink::grey, true, {{left, roof, ""}, {right, roof, ""}}});
  }
  figure.chart = plane_chart({"FLOP a byte", "FLOP a byte", Scale::logarithmic, {}, {}},
                             {"GFLOP/s", "GFLOP/s", Scale::logarithmic, {}, {}}, series);
  return figure;
}

}  // namespace

std::optional<Section> roofline_section(const Inputs& inputs) {
  const auto devices = rated_by_device(inputs);
  if (devices.empty()) return std::nullopt;
  Section section;
  section.id = "roofline";
  section.title = "Roofline";
  section.lead = "How fast each job was for the work that a byte of it carries.";
  for (const auto& [device, jobs] : devices) {
    section.figures.push_back(roofline_figure(device, jobs, section.figures.size() + 1));
  }
  return section;
}

}  // namespace kiln::host::page
