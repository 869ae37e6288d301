// BackgroundTuning: what [generator] background asks for: shapes that jobs ran are tuned on a thread of its own while
// no job runs, those first that took most time.
//
// Jobs go first: a job that comes finds what was being measured standing still, and what it broke off is measured again
// once no job has run for a while. It waits for its share of the time that the runtime has lived, while memory is
// short, while the runtime builds or warms, and while another process tunes for the same folder. Thread-safety: every
// method from any thread. Ownership: what its functions need outlives it; the destructor ends the measurement in the
// works, and its process, at once, and waits for a build that publishes a winner.
#pragma once

#include "cache/pressure/memory_reading.hpp"
#include "cache/pressure/pressure_decision.hpp"
#include "runtime/tuning/pausable_bench.hpp"
#include "runtime/tuning/shape_times.hpp"

#include <kiln/buffer.hpp>
#include <kiln/log.hpp>
#include <kiln/runtime.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace kiln {

struct TuningRules {
  double share = 0.02;                        // of the time since the start
  std::chrono::milliseconds quiet{1000};      // without a job before anything is measured
  std::chrono::milliseconds look{250};        // how often what nobody tells of is looked at
  std::chrono::milliseconds patience{5000};   // a process that has waited so long for its turn is ended
  std::chrono::milliseconds between{60'000};  // between two looks whether winners of shapes that ran have gone stale
  std::chrono::nanoseconds budget{30'000'000'000};  // of one shape
  MemorySources memory;
  PressureRules pressure;
};

class BackgroundTuning {
 public:
  // What it does is done by these, on its thread.
  struct Means {
    std::function<TuningState(const RanShape&)> state;
    std::function<std::unique_ptr<PausableBench>(const RanShape&)> bench;
    std::function<Result<TuneOutcome>(const RanShape&, VariantBench&, const TuneOptions&)> tune;
    std::function<bool()> busy;       // true: something else goes first, though it is no job
    std::filesystem::path turn_file;  // locked while a shape is tuned; empty: no other process is thought of
  };

  BackgroundTuning(Means means, TuningRules rules, Log log);
  ~BackgroundTuning();
  // unavailable: the system gives no thread, and nothing is done.
  const Status& started() const noexcept { return started_; }
  BackgroundTuning(const BackgroundTuning&) = delete;
  BackgroundTuning& operator=(const BackgroundTuning&) = delete;

  // A run that went well.
  void ran(const std::string& device, const KernelSpec& spec, const std::string& name, std::uint64_t wall_ns);
  // On its own thread, in tune(): the winner is built where nobody waits for anything.
  Status when_idle(const std::function<Status()>& work);
  BackgroundTuningState state() const;

  // A scope in which a job runs.
  class Job {
   public:
    explicit Job(BackgroundTuning* tuning);  // nullptr: nothing is tuned
    ~Job();
    Job(const Job&) = delete;
    Job& operator=(const Job&) = delete;

   private:
    BackgroundTuning* const tuning_;
  };

 private:
  class PacedBench;

  void work();
  void tune(const RanShape& shape);
  // Takes the lock that processes share, for one shape. false: another has it.
  bool take_turn();
  // Waits until there is time for it, counting itself busy from then on. false: it shall end. `bench` rests where that
  // takes long, and is the one that a job pauses; it may be null.
  bool begin(PausableBench* bench);
  // Answers whether a job came meanwhile.
  bool end();
  bool has_time(std::chrono::steady_clock::time_point now);         // REQUIRES: mutex_
  bool memory_is_short(std::chrono::steady_clock::time_point now);  // on the tuning thread

  const Means means_;
  const TuningRules rules_;
  const Log log_;
  const std::chrono::steady_clock::time_point born_;
  ShapeTimes shapes_;
  // Of the tuning thread:
  UniqueFd turn_;
  std::chrono::steady_clock::time_point looked_, reviewed_;
  bool memory_short_ = false;
  std::atomic<bool> stop_{false};
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::size_t jobs_ = 0;  // that run now
  std::chrono::steady_clock::time_point last_job_;
  bool working_ = false;
  PausableBench* bench_ = nullptr;  // that works
  std::chrono::steady_clock::time_point begun_;
  std::optional<std::chrono::steady_clock::time_point> broken_off_;  // when a job came
  std::chrono::nanoseconds spent_{0};
  BackgroundTuningState state_;
  Status started_;
  std::thread thread_;  // last: it uses the rest
};

}  // namespace kiln
