// ToldSelector: takes the last candidate, and remembers what it was asked and told.
//
// Thread-safety: every method from any thread; read Told while no job runs. Ownership: borrows Told.
#pragma once

#include "core/runtime/runtime_fixture.hpp"

#include <kiln/device_selector.hpp>

#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

namespace kiln::test {

struct ToldRun {
  ShapeBucket work;
  std::string device;
  Measurement measurement;
  RunConditions conditions;
};

struct Told {
  std::mutex mutex;
  std::vector<std::string> selected;    // operation and shape
  std::vector<JobTerms> terms;          // of each selection
  std::vector<std::vector<bool>> cold;  // of each selection, by candidate
  std::vector<ToldRun> runs;
  int saves = 0;
};

class ToldSelector final : public DeviceSelector {
 public:
  explicit ToldSelector(Told& told) : told_(told) {}

  // Makes it the selector of the fixture.
  static void serve(RuntimeFixture& fixture, Told& told) {
    const Status status = fixture.registry.add_selector("test", "told", [&told](const SelectorContext&) {
      return Result<std::unique_ptr<DeviceSelector>>(std::make_unique<ToldSelector>(told));
    });
    if (!status.ok()) throw std::runtime_error(status.text());
    fixture.config.selector.name = "told";
  }

  Result<Choice> select(const ShapeBucket& work, std::span<const Candidate> candidates,
                        const JobTerms& terms) noexcept override {
    const std::lock_guard lock(told_.mutex);
    told_.selected.push_back(work.operation + " " + work.shape);
    told_.terms.push_back(terms);
    std::vector<bool>& cold = told_.cold.emplace_back();
    for (const Candidate& candidate : candidates) cold.push_back(candidate.cold);
    return Choice{candidates.size() - 1, "the last", std::nullopt};
  }
  void save() noexcept override { ++told_.saves; }
  Result<Explanation> explain(const ShapeBucket&, std::span<const Candidate>, const JobTerms&) noexcept override {
    return unsupported("nothing to explain");
  }
  void record(const ShapeBucket& work, const DeviceInfo& device, const Measurement& measurement,
              const RunConditions& conditions) noexcept override {
    const std::lock_guard lock(told_.mutex);
    told_.runs.push_back({work, device.id, measurement, conditions});
  }

 private:
  Told& told_;
};

}  // namespace kiln::test
