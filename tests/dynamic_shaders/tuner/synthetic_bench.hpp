// A bench without a device, and tasks for it.
//
// Thread-safety: one thread. Ownership: values.
#pragma once

#include "dynamic_shaders/tuner/tuner.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>

namespace kiln::dynamic_shaders {

class SyntheticBench final : public VariantBench {
 public:
  explicit SyntheticBench(std::uint64_t seed = 1, double noise = 0.03) : state_(seed), noise_(noise) {}

  Result<VariantSamples> measure(std::string_view variant, std::uint32_t runs,
                                 std::chrono::nanoseconds) noexcept override {
    total_runs += runs;
    const std::string name(variant);
    if (on_measure) on_measure(name);
    if (const auto failure = failures.find(name); failure != failures.end()) return failure->second;
    VariantSamples samples;
    for (std::uint32_t run = 0; run < runs; ++run) {
      const double wall = times.at(name) * slowdown * (1 + noise_ * uniform() * uniform() * 4);  // noise only adds time
      samples.wall_ns.push_back(static_cast<std::uint64_t>(wall));
      samples.device_ns.push_back(static_cast<std::uint64_t>(wall * 0.9));
    }
    samples.source_digest = name;
    samples.contention = contention;
    samples.max_rel_error = 0.25, samples.error_bound = 0.5;
    if (const auto group = groups.find(name); group != groups.end()) samples.agreement = group->second;
    return samples;
  }

  std::uint64_t waited_ns() const noexcept override { return waited; }

  std::map<std::string, double> times;
  std::map<std::string, Status> failures;
  std::map<std::string, std::uint32_t> groups;  // VariantSamples::agreement
  double contention = 0;
  std::function<void(const std::string&)> on_measure;
  std::uint64_t waited = 0;
  std::uint32_t total_runs = 0;
  double slowdown = 1;  // multiplies every time

 private:
  double uniform() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<double>(state_ >> 40) / static_cast<double>(1 << 24);
  }
  std::uint64_t state_;
  double noise_;
};

// 200 variants whose times differ from what the model expects by up to 40 %.
inline TuneTask task_on(SyntheticBench& bench) {
  TuneTask task;
  for (int i = 0; i < 200; ++i) {
    const double predicted = 1e6 * (1 + 0.02 * i);
    const std::string name = "v" + std::to_string(i);
    task.candidates.push_back({name, predicted, 0});
    bench.times[name] = predicted * (1 + 0.4 * std::sin(i * 1.7));
  }
  task.candidates.push_back({"plain", 3e7, 0});
  bench.times["plain"] = 3e7;
  task.incumbent = "v0";
  task.baseline = "plain";
  task.form.device = "d", task.form.spec = "s";
  return task;
}

// Few variants without a model, as a user's kernel has them. Each record that is kept, the newest of a variant.
struct FewVariants {
  SyntheticBench bench{5};
  TuneTask task;
  TuneOptions options;
  std::map<std::string, TuningRecord> kept;

  explicit FewVariants(const std::map<std::string, double>& times) {
    bench.times = times;
    for (const auto& [name, time] : times) task.candidates.push_back({name, 0, 0});
    task.ranked = false;
    task.baseline = task.incumbent = times.begin()->first;
    task.keep = [this](const std::vector<TuningRecord>& records) {
      for (const TuningRecord& record : records) kept[record.variant] = record;
    };
  }
  Result<TuneOutcome> run() { return tune(task, bench, options); }
  std::size_t count(Verdict verdict) const {
    return static_cast<std::size_t>(
        std::ranges::count_if(kept, [&](const auto& entry) { return entry.second.verdict == verdict; }));
  }
};

inline double best_time(const SyntheticBench& bench) {
  double best = 1e300;
  for (const auto& [name, time] : bench.times) best = std::min(best, time);
  return best;
}

}  // namespace kiln::dynamic_shaders
