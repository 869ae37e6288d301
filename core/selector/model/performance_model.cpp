#include "selector/model/performance_model.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

namespace kiln::selector {
namespace {

// Standard deviations of log time: of runs of one bucket, what an octave of distance adds, and another family.
constexpr double guessed_deviation = 0.3;
constexpr double octave_deviation = 0.25;
constexpr double family_deviation = 0.7;
constexpr double roof_deviation = 1.0;
constexpr double family_octaves = 2;  // another family counts as this much farther

std::string_view family_of(std::string_view shape) { return shape.substr(0, shape.rfind(" @")); }

}  // namespace

// Before a device is opened its driver may be known in part or not at all. Then the driver under which it was last
// measured, else last looked at, is the best guess; once it is open, its own words decide.
ArmKey PerformanceModel::key_of(const ShapeBucket& bucket, const DeviceInfo& device, std::string shape) const {
  ArmKey key{bucket.operation, device.id, device.driver, std::move(shape)};
  if (!device.driver_identity.empty()) return key;
  const std::string* latest = nullptr;
  std::pair<bool, std::uint64_t> best;  // was measured, when it was last of use
  for (auto at = arms_.lower_bound({key.operation, key.device, "", ""});
       at != arms_.end() && at->first.operation == key.operation && at->first.device == key.device; ++at) {
    const std::pair<bool, std::uint64_t> rank{at->second.log_ns.count > 0, at->second.used};
    if (rank.first && at->first.driver == device.driver) return key;
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
  at->second.used = ++step_;
  if (added && arms_.size() > most_arms) {
    arms_.erase(std::min_element(arms_.begin(), arms_.end(),
                                 [](const auto& a, const auto& b) { return a.second.used < b.second.used; }));
  }
  return at->second;
}

Estimate PerformanceModel::estimate(const ShapeBucket& bucket, const DeviceInfo& device) const {
  const ArmKey key = key_of(bucket, device, bucket.shape);
  if (const Arm* arm = find(key); arm != nullptr && arm->log_ns.count > 0) {
    const double scale = bucket.flops > 0 && arm->log_flops > 0 ? std::log(bucket.flops) - arm->log_flops : 0;
    return {Evidence::own, arm->log_ns.mean + scale, arm->log_ns.mean_deviation(alpha_, guessed_deviation),
            arm->log_ns.count};
  }
  if (bucket.flops <= 0) return {};
  if (const Estimate found = from_neighbours(key, bucket); found.known()) return found;
  if (device.roof_gflops <= 0) return {};
  return {Evidence::roof, std::log(bucket.flops / device.roof_gflops), roof_deviation, 0};
}

Estimate PerformanceModel::from_neighbours(const ArmKey& key, const ShapeBucket& bucket) const {
  Estimate best;
  double least = std::numeric_limits<double>::max();
  const double log_flops = std::log(bucket.flops);
  for (auto at = arms_.lower_bound({key.operation, key.device, key.driver, ""}); at != arms_.end(); ++at) {
    const auto& [other, arm] = *at;
    if (other.operation != key.operation || other.device != key.device || other.driver != key.driver) break;
    if (arm.log_ns.count == 0 || arm.log_flops <= 0) continue;
    const bool same_family = family_of(other.shape) == bucket.family;
    const double scale = log_flops - arm.log_flops;
    const double octaves = std::abs(scale) / std::log(2.0);
    const double distance = octaves + (same_family ? 0 : family_octaves);
    if (distance >= least) continue;
    least = distance;
    best.evidence = !same_family   ? Evidence::guess
                    : octaves <= 1 ? Evidence::near
                    : scale < 0    ? Evidence::larger
                                   : Evidence::guess;
    best.log_ns = arm.log_ns.mean + scale;
    best.log_deviation = std::hypot(guessed_deviation, octave_deviation * octaves, same_family ? 0 : family_deviation);
  }
  return best;
}

double PerformanceModel::build_ns(const ShapeBucket& bucket, const DeviceInfo& device) const {
  const Arm* arm = find(key_of(bucket, device, ""));
  return arm == nullptr || arm->log_ns.count == 0 ? 0 : std::exp(arm->log_ns.mean);
}

std::uint32_t PerformanceModel::looks(const ShapeBucket& bucket, const DeviceInfo& device) const {
  const Arm* arm = find(key_of(bucket, device, bucket.shape));
  return arm == nullptr ? 0 : arm->looks;
}

void PerformanceModel::count_look(const ShapeBucket& bucket, const DeviceInfo& device) {
  ++touch(key_of(bucket, device, bucket.shape)).looks;
}

void PerformanceModel::learn_run(const ShapeBucket& bucket, const DeviceInfo& device, double ns) {
  Arm& arm = touch(key_of(bucket, device, bucket.shape));
  arm.log_ns.add(std::log(ns), alpha_);
  if (bucket.flops > 0) {
    const double weight = std::max(alpha_, 1.0 / static_cast<double>(arm.log_ns.count));
    arm.log_flops += weight * (std::log(bucket.flops) - arm.log_flops);
  }
}

void PerformanceModel::learn_build(const ShapeBucket& bucket, const DeviceInfo& device, double ns) {
  touch(key_of(bucket, device, "")).log_ns.add(std::log(ns), alpha_);
}

void PerformanceModel::settle_driver(const ShapeBucket& bucket, const DeviceInfo& device) {
  const ArmKey key = key_of(bucket, device, bucket.shape);
  std::uint32_t looks = 0;
  for (auto at = arms_.lower_bound({key.operation, key.device, "", ""});
       at != arms_.end() && at->first.operation == key.operation && at->first.device == key.device;) {
    const bool before_it_was_open =
        at->first.shape == key.shape && at->first.driver != key.driver && at->second.log_ns.count == 0;
    if (before_it_was_open) looks += at->second.looks;
    at = before_it_was_open ? arms_.erase(at) : std::next(at);
  }
  if (looks != 0) touch(key).looks += looks;
}

void PerformanceModel::restore(ArmKey key, Arm arm) {
  if (arms_.size() >= most_arms) return;
  step_ = std::max(step_, arm.used);
  arms_.insert_or_assign(std::move(key), arm);
}

}  // namespace kiln::selector
