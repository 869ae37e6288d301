#include "selector/prospect.hpp"

#include <cmath>
#include <cstdio>
#include <limits>

namespace kiln::selector {
namespace {

std::string duration(double ns) {
  const bool seconds = ns >= 999.5e6;
  char text[48];
  std::snprintf(text, sizeof text, "%.3g %s", ns / (seconds ? 1e9 : 1e6), seconds ? "s" : "ms");
  return text;
}

std::string evidence_of(const Estimate& run) {
  switch (run.evidence) {
    case Evidence::own:
      return std::to_string(run.runs) + (run.runs == 1 ? " run" : " runs");
    case Evidence::near:
      return "from a shape of about this size";
    case Evidence::larger:
      return "from a larger shape";
    case Evidence::guess:
      return "guessed from other shapes";
    case Evidence::roof:
      return "at best, by its roof";
    case Evidence::nothing:
    case Evidence::invalid:
      break;
  }
  return "";
}

}  // namespace

double Prospect::run_ns() const noexcept {
  return run.known() ? std::exp(run.log_ns) : std::numeric_limits<double>::infinity();
}

double Prospect::cost_ns() const noexcept { return fixed_ns() + run_ns(); }

std::string Prospect::text() const {
  std::string words = device->id + ": ";
  words += run.known() ? duration(run_ns()) + " expected (" + evidence_of(run) + ")" : "not measured yet";
  if (queue_ns > 0) words += " + " + duration(queue_ns) + " queue";
  if (build_ns > 0) words += " + " + duration(build_ns) + " build";
  return words;
}

std::vector<Prospect> prospects_of(const PerformanceModel& model, const ShapeBucket& bucket,
                                   std::span<const Candidate> candidates) {
  std::vector<Prospect> prospects;
  for (const Candidate& candidate : candidates) {
    Prospect& prospect = prospects.emplace_back();
    prospect.device = candidate.device;
    prospect.run = model.estimate(bucket, *candidate.device);
    prospect.queue_ns = static_cast<double>(candidate.queue_wait_ns);
    prospect.build_ns = candidate.cold ? model.build_ns(bucket, *candidate.device) : 0;
    prospect.looks = model.looks(bucket, *candidate.device);
  }
  return prospects;
}

std::string text_of(std::span<const Prospect> prospects, std::size_t chosen) {
  std::string words = prospects[chosen].text();
  for (std::size_t i = 0; i < prospects.size(); ++i) {
    if (i != chosen) words += ", " + prospects[i].text();
  }
  return words;
}

}  // namespace kiln::selector
