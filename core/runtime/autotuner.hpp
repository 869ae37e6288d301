// Tuning: measuring variants in a child, and keeping the fastest.
//
// BenchProcess: measures variants of one spec in a child process (kiln-probe) with a timeout.
//
// If the child crashes or hangs, the measurement fails and the next one starts a new child.
// Thread-safety: as PausableBench. Ownership: the destructor ends the child and its process group. The child also ends
// when its parent or the thread that started it ends.
#pragma once

#include "base/os/child_process.hpp"
#include "runtime/background_tuning.hpp"
#include "runtime/child_protocols.hpp"
#include "runtime/planner.hpp"
#include "runtime/programs.hpp"

#include <sys/types.h>

#include <kiln/buffer.hpp>
#include <kiln/clock.hpp>
#include <kiln/config.hpp>
#include <kiln/tuning.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace kiln {

class BenchProcess final : public PausableBench {
 public:
  // When `interrupted` becomes true, a measurement fails with `cancelled`. It must outlive this object; null: never.
  BenchProcess(std::filesystem::path probe, BenchSetup setup, const std::atomic<bool>* interrupted = nullptr);
  ~BenchProcess() override;

  Result<VariantSamples> measure(std::string_view variant, std::uint32_t runs,
                                 std::chrono::nanoseconds limit) noexcept override;
  // Stops the child's threads. The interrupted measurement is repeated after resume().
  void pause() noexcept override;
  void resume() noexcept override;
  void rest() noexcept override { (void)stop(); }

 private:
  // Time in which a child exits after its input was closed.
  static constexpr std::chrono::nanoseconds time_to_leave = std::chrono::milliseconds(100);
  // Time until the exit status of a child that closed its output is available.
  static constexpr std::chrono::nanoseconds time_to_crash = std::chrono::seconds(5);
  // The reference of a large layer takes minutes on a slow machine.
  static constexpr std::chrono::nanoseconds time_to_prepare = std::chrono::minutes(10);

  Status start();
  Result<std::string> hear(Deadline deadline);
  // Returns the next answer line. `limit` does not include the time in which the child prepares.
  Result<std::string> hear_answer(std::chrono::nanoseconds limit);
  // Ends the child. Returns how it ended if it ended by itself within `grace`.
  std::string stop(std::chrono::nanoseconds grace = time_to_leave);
  bool paused();

  const std::filesystem::path probe_;
  BenchSetup setup_;
  UniqueFd outputs_;  // BenchSetup::outputs
  const std::atomic<bool>* const interrupted_;
  UniqueFd pauses_;   // eventfd that wakes the reading thread
  std::mutex mutex_;  // guards pid_ and paused_: a child that is being ended is not paused
  pid_t pid_ = -1;
  bool paused_ = false;
  std::optional<ChildProcess> child_;
  std::string heard_;     // bytes after the last complete line
  std::size_t owed_ = 0;  // answers expected to requests from before a pause
  bool prepares_ = false;
};

// Autotuner: measures the variants of a spec and stores the fastest one, in the foreground and in the background.
//
// Thread-safety: every method from any thread after start_background() has returned. Ownership: owns the background
// tuning; borrows the rest.

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
