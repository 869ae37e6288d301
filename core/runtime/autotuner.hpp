// Autotuner: measures the variants of a spec and stores the fastest one, in the foreground and in the background.
//
// Thread-safety: every method from any thread after start_background() has returned. Ownership: owns the background
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

  // Starts background tuning if [generator] background is set. It measures only while busy() returns false. Returns an
  // error if it cannot start.
  Status start_background(std::function<bool()> busy);
  // nullptr: not started.
  BackgroundTuning* background() const noexcept { return background_.get(); }

  // See Runtime::tune().
  Result<TuneOutcome> tune(const KernelSpec& spec, const std::string& device, VariantBench& bench,
                           const TuneOptions& options);

 private:
  Result<TuneOutcome> measure(const KernelSpec& spec, const std::string& device, VariantBench& bench,
                              const TuneOptions& options);
  // Builds and thereby stores the programs of the winner.
  Status publish(const KernelSpec& spec, const std::string& name, const std::string& device, const std::string& variant,
                 unsigned threads);

  const Config& config_;
  const Log log_;
  DeviceTable& devices_;
  Planner& planner_;
  Programs& programs_;
  std::unique_ptr<BackgroundTuning> background_;  // last member: it uses the others
};

}  // namespace kiln
