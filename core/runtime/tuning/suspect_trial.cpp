#include "runtime/tuning/suspect_trial.hpp"

#include "config/sources_of.hpp"

#include <kiln/plugin_loader.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <mutex>

namespace kiln {
namespace {

// From the start of the child, which opens the device. A driver loads a program in milliseconds.
constexpr std::chrono::seconds longest_trial{20};

class SuspectTrials {
 public:
  SuspectTrials(std::filesystem::path probe, ConfigSources sources)
      : probe_(std::move(probe)), sources_(std::move(sources)) {}

  TrialOutcome try_one(const Digest& suspect, const DeviceInfo& device) {
    ++wanted_;
    const std::lock_guard lock(mutex_);
    if (child_ == nullptr || device_ != device.id) {
      BenchSetup setup;
      setup.sources = sources_;
      setup.device = device.id;
      setup.subject = StoredPrograms{};
      child_ = std::make_unique<BenchProcess>(probe_, std::move(setup));
      device_ = device.id;
    }
    const auto answer = child_->measure(suspect.hex(), 0, longest_trial);
    TrialOutcome outcome = outcome_of(answer, child_->end());
    if (--wanted_ == 0) child_ = nullptr;
    return outcome;
  }

 private:
  const std::filesystem::path probe_;
  const ConfigSources sources_;
  std::atomic<int> wanted_{0};
  std::mutex mutex_;
  std::unique_ptr<BenchProcess> child_;
  std::string device_;
};

}  // namespace

TrialOutcome outcome_of(const Result<VariantSamples>& answer, const std::string& end) {
  if (answer) return {TrialVerdict::good, {}};
  const Status& failure = answer.error();
  if (end.empty()) return {TrialVerdict::unknown, failure.message};
  if (failure.code == StatusCode::timeout) return {TrialVerdict::died, "no answer in time"};
  // What others send to a process says nothing of the program: SIGKILL for want of memory, SIGTERM.
  constexpr std::array of_its_own = {"SIGSEGV", "SIGABRT", "SIGBUS", "SIGILL"};
  for (const char* signal : of_its_own) {
    if (end == std::string("ended by ") + signal) return {TrialVerdict::died, signal};
  }
  return {TrialVerdict::unknown, failure.message};
}

LoadTrial suspect_trial(const Config& config) {
  const std::filesystem::path probe = PluginLoader::default_probe();
  std::error_code error;
  if (!std::filesystem::exists(probe, error)) return {};
  const auto trials = std::make_shared<SuspectTrials>(probe, config::sources_of(config));
  return [trials](const Digest& suspect, const DeviceInfo& device) { return trials->try_one(suspect, device); };
}

}  // namespace kiln
