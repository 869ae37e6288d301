// Autotuner: measures the variants of a spec and stores the winner, on request and in the background.
//
// Thread-safety: every method from any thread once start_background() has returned. Ownership: owns the background
// tuning; borrows the rest.
#pragma once

#include "runtime/background_tuning.hpp"
#include "runtime/planner.hpp"
#include "runtime/programs.hpp"

#include <kiln/config.hpp>
#include <kiln/tuning.hpp>

#include <functional>
#include <memory>
#include <string>

namespace kiln {

class Autotuner {
 public:
  Autotuner(const Config& config, Log log, DeviceTable& devices, Planner& planner, Programs& programs);

  // Starts what [generator] background asks for. busy: while it is true, nothing is measured. An error: why it cannot
  // be done.
  Status start_background(std::function<bool()> busy);
  // nullptr: it was not started.
  BackgroundTuning* background() const noexcept { return background_.get(); }

  // See Runtime::tune().
  Result<TuneOutcome> tune(const KernelSpec& spec, const std::string& device, VariantBench& bench,
                           const TuneOptions& options);

 private:
  Result<TuneOutcome> measure(const KernelSpec& spec, const std::string& device, VariantBench& bench,
                              const TuneOptions& options);
  // Builds the programs of the winner, which stores them.
  Status publish(const KernelSpec& spec, const std::string& name, const std::string& device, const std::string& variant,
                 unsigned threads);

  const Config& config_;
  const Log log_;
  DeviceTable& devices_;
  Planner& planner_;
  Programs& programs_;
  std::unique_ptr<BackgroundTuning> background_;  // last: what it does needs the rest
};

}  // namespace kiln
