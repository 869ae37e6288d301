// BenchProcess: runs variants of one spec in kiln-probe, a process of its own, under a watchdog.
//
// Thread-safety: as PausableBench. Ownership: the child and its process group are gone when this dies; the child dies
// with its parent, and with the thread that measured first, too. What crashes or hangs costs the child: the next
// measurement starts another.
#pragma once

#include "base/os/child_process.hpp"
#include "runtime/background_tuning.hpp"
#include "runtime/bench_protocol.hpp"

#include <sys/types.h>

#include <kiln/buffer.hpp>
#include <kiln/clock.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>

namespace kiln {

class BenchProcess final : public PausableBench {
 public:
  // interrupted: true: what is being measured is left where it is, with status cancelled. Outlives this; null: never.
  BenchProcess(std::filesystem::path probe, BenchSetup setup, const std::atomic<bool>* interrupted = nullptr);
  ~BenchProcess() override;

  Result<VariantSamples> measure(std::string_view variant, std::uint32_t runs,
                                 std::chrono::nanoseconds limit) noexcept override;
  // The child's threads are stopped where they are. What it was measuring is measured again after resume().
  void pause() noexcept override;
  void resume() noexcept override;
  void rest() noexcept override { (void)stop(); }

 private:
  // A child whose input ends leaves at once, unless it hangs.
  static constexpr std::chrono::nanoseconds time_to_leave = std::chrono::milliseconds(100);
  // One that has closed its output has crashed; until the system tells how, a busy machine takes its time.
  static constexpr std::chrono::nanoseconds time_to_crash = std::chrono::seconds(5);
  // The largest layers' references take minutes on a small machine.
  static constexpr std::chrono::nanoseconds time_to_prepare = std::chrono::minutes(10);

  Status start();
  Result<std::string> hear(Deadline deadline);
  // The next line that is an answer, within `limit` beside what the child prepares.
  Result<std::string> hear_answer(std::chrono::nanoseconds limit);
  // Ends the child; answers how it had ended by itself, where it did so within that time.
  std::string stop(std::chrono::nanoseconds grace = time_to_leave);
  bool paused();

  const std::filesystem::path probe_;
  BenchSetup setup_;
  UniqueFd outputs_;  // BenchSetup::outputs
  const std::atomic<bool>* const interrupted_;
  UniqueFd pauses_;   // an event, for who listens to the child
  std::mutex mutex_;  // of the next two: a child that is being ended is nobody's to pause
  pid_t pid_ = -1;
  bool paused_ = false;
  std::optional<ChildProcess> child_;
  std::string heard_;     // behind the last whole line
  std::size_t owed_ = 0;  // answers to what was asked before a pause
  bool prepares_ = false;
};

}  // namespace kiln
