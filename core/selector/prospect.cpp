#include "selector/prospect.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

namespace kiln::selector {
namespace {

std::string counted(std::uint64_t count, const char* what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

// For those without runs of their own: by those that have some, where that is the surer word. Each of these says
// something else of the shape; their words are weighed, and the sum is taken to be no surer than the surest of them.
void compare(std::vector<Prospect>& prospects, const PerformanceModel& model, const ShapeBucket& bucket) {
  for (Prospect& prospect : prospects) {
    if (prospect.run.evidence == Evidence::own || prospect.run.evidence == Evidence::first) continue;
    Estimate surest;
    double weights = 0, total = 0;
    for (const Prospect& other : prospects) {
      if (other.run.evidence != Evidence::own && other.run.evidence != Evidence::first) continue;
      const Estimate found = model.compared(bucket, *prospect.device, *other.device, other.run);
      if (!found.known()) continue;
      const double weight = 1 / (found.log_deviation * found.log_deviation);
      weights += weight;
      total += weight * found.log_ns;
      if (!surest.known() || found.log_deviation < surest.log_deviation) surest = found;
    }
    if (!surest.known()) continue;
    surest.log_ns = total / weights;
    if (!prospect.run.measured() || surest.log_deviation < prospect.run.log_deviation) prospect.run = surest;
  }
}

}  // namespace

std::string duration_text(double ns) {
  if (!std::isfinite(ns)) return "unknown";
  const bool seconds = ns >= 999.5e6;
  char text[48];
  std::snprintf(text, sizeof text, "%.3g %s", ns / (seconds ? 1e9 : 1e6), seconds ? "s" : "ms");
  return text;
}

std::string evidence_text(const Estimate& run) {
  switch (run.evidence) {
    case Evidence::own:
      return counted(run.runs, "run");
    case Evidence::first:
      return counted(run.runs, "first run") + ", no later one";
    case Evidence::regression:
      return run.shapes == 1 ? "scaled from another shape" : "by regression on " + counted(run.shapes, "other shape");
    case Evidence::compared:
      return "by how it compares on " + counted(run.shapes, "other shape");
    case Evidence::roof:
      return "at best, by its roof";
    case Evidence::nothing:
    case Evidence::invalid:
      break;
  }
  return "not measured yet";
}

double Prospect::run_ns() const noexcept {
  return run.known() ? std::exp(run.log_ns) : std::numeric_limits<double>::infinity();
}

double Prospect::cost_ns() const noexcept { return fixed_ns() + run_ns(); }

double Prospect::now_ns() const noexcept {
  return run.measured() ? queue_ns + build_ns + repeat * run_ns() : std::numeric_limits<double>::infinity();
}

std::string Prospect::text() const {
  std::string words = device->id + ": ";
  words += run.known() ? duration_text(run_ns()) + " expected (" + evidence_text(run) + ")" : "not measured yet";
  if (queue_ns > 0) words += " + " + duration_text(queue_ns) + " queue";
  if (build_ns > 0) {
    words += " + " + duration_text(build_ns) + " build";
    if (uses > 1) words += " shared by " + counted(static_cast<std::uint64_t>(uses), "run");
  }
  return words;
}

CandidateCost Prospect::figures() const {
  CandidateCost cost;
  cost.device = device->id;
  cost.evidence = evidence_text(run);
  cost.runs = run.runs;
  cost.looks = looks;
  cost.cold = cold;
  cost.queue_ns = queue_ns;
  cost.transfer_ns = std::min(run.transfer_ns, run_ns());
  cost.build_ns = build_ns;
  cost.run_ns = run_ns() - cost.transfer_ns;
  cost.cost_ns = cost_ns();
  cost.deviation = run.known() ? run.log_deviation : std::numeric_limits<double>::infinity();
  return cost;
}

std::vector<Prospect> prospects_of(const PerformanceModel& model, const ShapeBucket& bucket,
                                   std::span<const Candidate> candidates, const JobTerms& terms, std::uint64_t jobs) {
  std::vector<Prospect> prospects;
  prospects.reserve(candidates.size());
  for (const Candidate& candidate : candidates) {
    Prospect& prospect = prospects.emplace_back();
    prospect.device = candidate.device;
    prospect.run = model.estimate(bucket, *candidate.device);
    prospect.queue_ns = static_cast<double>(candidate.queue_wait_ns);
    prospect.cold = candidate.cold;
    if (candidate.cold) {
      prospect.build_ns = model.build_ns(bucket, *candidate.device) + prospect.run.first_extra_ns;
    }
    prospect.repeat = std::max(terms.repeat, 1u);
    prospect.uses = static_cast<double>(std::max<std::uint64_t>(jobs, prospect.repeat));
    prospect.looks = model.looks(bucket, *candidate.device);
  }
  compare(prospects, model, bucket);
  return prospects;
}

double best_cost_ns(std::span<const Prospect> prospects) noexcept {
  double best = std::numeric_limits<double>::infinity();
  for (const Prospect& prospect : prospects) {
    if (prospect.run.measured()) best = std::min(best, prospect.cost_ns());
  }
  return best;
}

std::string text_of(std::span<const Prospect> prospects, std::size_t chosen) {
  std::string words = prospects[chosen].text();
  for (std::size_t i = 0; i < prospects.size(); ++i) {
    if (i != chosen) words += ", " + prospects[i].text();
  }
  return words;
}

}  // namespace kiln::selector
