#define XXH_INLINE_ALL  // from the header alone: no library to bind at start
#include "selector/performance_model.hpp"

#include "selector/statistics.hpp"

#include <kiln/digest.hpp>
#include <kiln/operation.hpp>

#include <xxhash.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

namespace kiln::selector {
namespace {

// Standard deviations of log time: of what first runs say about later ones, and a roof about anything.
constexpr double first_deviation = 0.5;
constexpr double roof_deviation = 1.0;
// Of how two devices compare from shape to shape, until that is known; it counts as so many shapes.
constexpr double guessed_comparison = 0.5;
constexpr double comparison_guesses = 2;

std::uint64_t now_us() {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count());
}

void follow(double& mean, double value, double weight) {
  if (value > 0) mean += (mean == 0 ? 1 : weight) * (std::log(value) - mean);
}

}  // namespace

std::string fingerprint(const DeviceInfo& device) {
  if (device.driver_identity.empty()) return device.driver;
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  const auto take = [&](const std::string& text) { XXH3_64bits_update(&state, text.data(), text.size() + 1); };
  for (const auto* identity : {&device.device_identity, &device.driver_identity, &device.speed_identity}) {
    for (const auto& [name, value] : *identity) take(name), take(value);
  }
  char digest[24];
  std::snprintf(digest, sizeof digest, " #%08x", static_cast<unsigned>(XXH3_64bits_digest(&state)));
  return device.driver + digest;
}

void bound(std::map<ArmKey, Arm>& arms) {
  if (arms.size() <= PerformanceModel::most_arms) return;
  std::vector<std::uint64_t> uses;
  for (const auto& [key, arm] : arms) uses.push_back(arm.used);
  const auto surplus = static_cast<std::ptrdiff_t>(arms.size() - PerformanceModel::most_arms);
  std::nth_element(uses.begin(), uses.begin() + surplus, uses.end());
  const std::uint64_t oldest = uses[static_cast<std::size_t>(surplus)];
  std::erase_if(arms, [&](const auto& entry) { return entry.second.used < oldest; });
  for (auto at = arms.begin(); at != arms.end() && arms.size() > PerformanceModel::most_arms;) {
    at = at->second.used == oldest ? arms.erase(at) : std::next(at);
  }
}

// Before a device is opened its driver may be known in part or not at all. Then the driver under which it was last
// measured, else last looked at, is the best guess; once it is open, its own words decide.
ArmKey PerformanceModel::key_of(const ShapeBucket& bucket, const DeviceInfo& device, std::string_view shape) const {
  ArmKey key{bucket.operation, device.id, fingerprint(device), std::string(shape)};
  if (!device.driver_identity.empty()) return key;
  const std::string* latest = nullptr;
  std::pair<bool, std::uint64_t> best;  // was measured, when it was last of use
  for (auto at = arms_.lower_bound({key.operation, key.device, "", ""});
       at != arms_.end() && at->first.operation == key.operation && at->first.device == key.device; ++at) {
    const Arm& arm = at->second;
    const std::pair<bool, std::uint64_t> rank{arm.run.log_ns.count + arm.log_first.count > 0, arm.used};
    if (rank.first && at->first.driver == key.driver) return key;
    if (latest != nullptr && rank <= best) continue;
    latest = &at->first.driver;
    best = rank;
  }
  if (latest != nullptr) key.driver = *latest;
  return key;
}

const Arm* PerformanceModel::find(const ArmKey& key) const {
  const auto at = arms_.find(key);
  return at == arms_.end() ? nullptr : &at->second;
}

Arm& PerformanceModel::touch(const ArmKey& key) {
  const auto [at, added] = arms_.try_emplace(key);
  Arm& arm = at->second;
  arm.used = step_ = std::max(step_ + 1, now_us());
  if (added) bound(arms_);
  return arm;
}

Estimate PerformanceModel::estimate(const ShapeBucket& bucket, const DeviceInfo& device) const {
  const ArmKey key = key_of(bucket, device, bucket.shape);
  const Arm* arm = find(key);
  if (arm != nullptr && arm->run.log_ns.count + arm->log_first.count > 0) {
    Estimate found;
    const double scale = bucket.flops > 0 && arm->log_flops > 0 ? std::log(bucket.flops) - arm->log_flops : 0;
    const bool steady = arm->run.log_ns.count > 0;
    found.evidence = steady ? Evidence::own : Evidence::first;
    found.log_ns = (steady ? arm->run.log_ns.mean : arm->log_first.mean) + scale;
    found.log_deviation = steady ? arm->run.mean_deviation(alpha_) : first_deviation;
    found.drifted = arm->run.alarms > 0;
    found.runs = steady ? arm->run.log_ns.count : arm->log_first.count;
    if (arm->log_transfer.count > 0) found.transfer_ns = std::exp(arm->log_transfer.mean);
    if (steady && arm->log_first.count > 0) {
      found.first_extra_ns = std::max(0.0, std::exp(arm->log_first.mean + scale) - std::exp(found.log_ns));
    }
    return found;
  }
  if (bucket.flops <= 0) return {};
  if (const Estimate found = from_other_shapes(key, bucket); found.known()) return found;
  if (device.roof_gflops <= 0) return {};
  Estimate roof;
  roof.evidence = Evidence::roof;
  roof.log_ns = std::log(bucket.flops / device.roof_gflops);
  roof.log_deviation = roof_deviation;
  return roof;
}

// By steady runs of other shapes where there are any, else by first runs.
Estimate PerformanceModel::from_other_shapes(const ArmKey& key, const ShapeBucket& bucket) const {
  std::vector<RunPoint> steady, firsts;
  for (auto at = arms_.lower_bound({key.operation, key.device, key.driver, ""}); at != arms_.end(); ++at) {
    const auto& [other, arm] = *at;
    if (other.operation != key.operation || other.device != key.device || other.driver != key.driver) break;
    if (arm.log_flops <= 0) continue;
    const bool has_steady = arm.run.log_ns.count > 0;
    if (!has_steady && arm.log_first.count == 0) continue;
    (has_steady ? steady : firsts)
        .push_back({std::exp(arm.log_flops), arm.log_bytes > 0 ? std::exp(arm.log_bytes) : 0,
                    has_steady ? arm.run.log_ns.mean : arm.log_first.mean, family_in(other.shape) == bucket.family});
  }
  const auto predicted = predict(steady.empty() ? firsts : steady, bucket.flops, bucket.bytes);
  if (!predicted) return {};
  Estimate found;
  found.evidence = Evidence::regression;
  found.log_ns = predicted->log_ns;
  found.log_deviation =
      steady.empty() ? std::hypot(predicted->log_deviation, first_deviation) : predicted->log_deviation;
  found.shapes = predicted->shapes;
  return found;
}

// Both devices' arms lie in the order of their shapes: one walk along the two.
Estimate PerformanceModel::compared(const ShapeBucket& bucket, const DeviceInfo& device, const DeviceInfo& other,
                                    const Estimate& known) const {
  const ArmKey first = key_of(bucket, device, ""), second = key_of(bucket, other, "");
  auto a = arms_.lower_bound(first), b = arms_.lower_bound(second);
  const auto belongs = [&](auto at, const ArmKey& key) {
    return at != arms_.end() && at->first.operation == key.operation && at->first.device == key.device &&
           at->first.driver == key.driver;
  };
  double weights = 0, total = 0, squares = 0;
  std::size_t shapes = 0;
  while (belongs(a, first) && belongs(b, second)) {
    if (a->first.shape != b->first.shape) {
      ++(a->first.shape < b->first.shape ? a : b);
      continue;
    }
    const Arm &one = a->second, &two = b->second;
    const bool steady = one.run.log_ns.count > 0 && two.run.log_ns.count > 0;
    if (one.log_flops > 0 && (steady || (one.log_first.count > 0 && two.log_first.count > 0))) {
      const double ratio = steady ? one.run.log_ns.mean - two.run.log_ns.mean : one.log_first.mean - two.log_first.mean;
      const double octaves = bucket.flops > 0 ? (std::log(bucket.flops) - one.log_flops) / std::log(2.0) : 0;
      const double weight =
          std::exp(-octaves * octaves / 32) * (family_in(a->first.shape) == bucket.family ? 1.0 : 0.5);
      weights += weight;
      total += weight * ratio;
      squares += weight * ratio * ratio;
      ++shapes;
    }
    ++a, ++b;
  }
  if (weights <= 0.5) return {};
  const double mean = total / weights;
  const double spread = std::max(0.0, squares - weights * mean * mean);
  const double guessed = comparison_guesses * guessed_comparison * guessed_comparison;
  const double deviation = std::sqrt((spread + guessed) / std::max(weights - 1 + comparison_guesses, 1.0));
  Estimate found;
  found.evidence = Evidence::compared;
  found.log_ns = known.log_ns + mean;
  found.log_deviation = std::hypot(deviation, deviation / std::sqrt(weights), known.log_deviation);
  found.shapes = shapes;
  return found;
}

double PerformanceModel::build_ns(const ShapeBucket& bucket, const DeviceInfo& device) const {
  const Arm* ran = find(key_of(bucket, device, bucket.shape));
  const bool on_disk = ran != nullptr && ran->run.log_ns.count + ran->log_first.count > 0;
  for (const std::string_view shape : {on_disk ? load_shape : build_shape, on_disk ? build_shape : load_shape}) {
    const Arm* arm = find(key_of(bucket, device, shape));
    if (arm != nullptr && arm->run.log_ns.count > 0) return std::exp(arm->run.log_ns.mean);
  }
  return 0;
}

std::uint32_t PerformanceModel::looks(const ShapeBucket& bucket, const DeviceInfo& device) const {
  const Arm* arm = find(key_of(bucket, device, bucket.shape));
  return arm == nullptr ? 0 : arm->looks;
}

void PerformanceModel::count_look(const ShapeBucket& bucket, const DeviceInfo& device) {
  ++touch(key_of(bucket, device, bucket.shape)).looks;
}

Drift PerformanceModel::learn_run(const ShapeBucket& bucket, const DeviceInfo& device, double ns, double transfer_ns) {
  Arm& arm = touch(key_of(bucket, device, bucket.shape));
  // As if every run were of the bucket's mean size, so that its sizes do not look like noise.
  const double weight = std::max(alpha_, 1.0 / static_cast<double>(arm.run.log_ns.count + 1));
  const double scale = bucket.flops > 0 && arm.log_flops > 0 ? arm.log_flops - std::log(bucket.flops) : 0;
  const Drift drift = arm.run.add(std::log(ns) + scale, alpha_);
  if (transfer_ns >= 1) arm.log_transfer.add(std::log(transfer_ns), alpha_);
  const double before = arm.log_flops;
  follow(arm.log_flops, bucket.flops, weight);
  follow(arm.log_bytes, bucket.bytes, weight);
  if (before > 0) arm.run.log_ns.mean += arm.log_flops - before;
  return drift;
}

void PerformanceModel::learn_first(const ShapeBucket& bucket, const DeviceInfo& device, double ns) {
  Arm& arm = touch(key_of(bucket, device, bucket.shape));
  arm.log_first.add(std::log(ns), alpha_);
  if (arm.log_flops == 0) follow(arm.log_flops, bucket.flops, 1);
  if (arm.log_bytes == 0) follow(arm.log_bytes, bucket.bytes, 1);
}

void PerformanceModel::learn_build(const ShapeBucket& bucket, const DeviceInfo& device, std::string_view shape,
                                   double ns) {
  touch(key_of(bucket, device, shape)).run.add(std::log(ns), alpha_);
}

void PerformanceModel::settle_driver(const ShapeBucket& bucket, const DeviceInfo& device) {
  const ArmKey key = key_of(bucket, device, bucket.shape);
  std::uint32_t looks = 0;
  // From driver to driver: a model may hold thousands of shapes, and this is called for each run.
  for (auto at = arms_.lower_bound({key.operation, key.device, "", ""});
       at != arms_.end() && at->first.operation == key.operation && at->first.device == key.device;) {
    const std::string driver = at->first.driver;
    at = arms_.lower_bound({key.operation, key.device, driver + '\0', ""});
    if (driver == key.driver) continue;
    const auto one = arms_.find({key.operation, key.device, driver, key.shape});
    if (one == arms_.end() || one->second.run.log_ns.count + one->second.log_first.count != 0) continue;
    looks += one->second.looks;
    arms_.erase(one);
  }
  if (looks != 0) touch(key).looks += looks;
}

void PerformanceModel::replace(std::map<ArmKey, Arm> arms) {
  arms_ = std::move(arms);
  for (const auto& [key, arm] : arms_) step_ = std::max(step_, arm.used);
  bound(arms_);
}

std::string_view family_in(std::string_view shape) noexcept { return shape.substr(0, shape.rfind(" @")); }

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
      return "compared with another device on " + counted(run.shapes, "other shape");
    case Evidence::roof:
      return "at best, by the roof of the device";
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
