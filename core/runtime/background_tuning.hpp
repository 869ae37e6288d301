// BackgroundTuning: tunes the shapes that jobs ran, on its own thread while no job runs ([generator] background).
//
// Shapes with the longest total run time are tuned first. A job pauses the current measurement, which is repeated after
// a quiet period. Tuning waits while its share of the runtime's lifetime is used up, memory is short, the runtime
// builds or warms, or another process tunes for the same folder.
// Thread-safety: every method from any thread. Ownership: the objects that its functions use must outlive it. The
// destructor ends a running measurement and its process at once, but waits for a build that publishes a winner.
#pragma once

#include "base/os/memory_pressure.hpp"

#include <kiln/buffer.hpp>
#include <kiln/kernel.hpp>
#include <kiln/log.hpp>
#include <kiln/run_request.hpp>
#include <kiln/status.hpp>
#include <kiln/tuning.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>

namespace kiln {

struct RanShape {
  std::string device;  // a device id
  KernelSpec spec;
  std::string name;  // name of the first job that ran it

  bool operator==(const RanShape& other) const { return device == other.device && spec == other.spec; }
};

// Run time of each shape on each device in this process. Bounded: it tracks at most 4,096 shapes. User kernels are not
// tracked, because only their own files can measure them.
//
// Thread-safety: every method from any thread; ran() takes one lock. Ownership: values.
class ShapeTimes {
 public:
  void ran(const std::string& device, const KernelSpec& spec, const std::string& name, std::uint64_t ns);
  // Returns the waiting shape with the longest run time; nullopt if none waits.
  std::optional<RanShape> next() const;
  std::size_t waiting() const;
  // settle() takes a shape out of the waiting ones. wait_again() returns the settled shapes that ran since.
  void settle(const RanShape& shape);
  void wait_again();
  // Takes the shape out permanently.
  void give_up(const RanShape& shape);

 private:
  struct Hash {
    std::size_t operator()(const RanShape& shape) const noexcept;
  };
  struct Times {
    std::uint64_t ns = 0;
    bool waits = true;
    bool ran_since = false;  // since it was settled
    bool given_up = false;
  };

  mutable std::mutex mutex_;
  std::unordered_map<RanShape, Times, Hash> shapes_;
};

// A benchmark that another thread can pause immediately, so that a job can run.
//
// Thread-safety: pause() and resume() from any thread; other methods from the measuring thread.
class PausableBench : public VariantBench {
 public:
  // After the return nothing is computed until resume(). A running or new measurement fails with `cancelled`.
  virtual void pause() noexcept = 0;
  virtual void resume() noexcept = 0;
  // Releases resources while idle; the next measurement acquires them again.
  virtual void rest() noexcept = 0;
};

// Foreground tuning locks a file in the cache folder so that two processes do not measure at once. Background tuning
// stops while the file is locked.
// Waits for the lock and logs the wait once. cancelled: `stop` (may be null) became true. Returns an empty descriptor
// if there is no writable folder.
Result<UniqueFd> take_asked_turn(const std::filesystem::path& folder, const std::atomic<bool>* stop, const Log& log);

// Returns whether any process holds this lock, this one included.
bool is_asked_turn_taken(const std::filesystem::path& folder) noexcept;

struct TuningRules {
  double share = 0.02;                              // of the time since the start
  std::chrono::milliseconds quiet{1000};            // time without jobs before a measurement
  std::chrono::milliseconds look{250};              // polling interval of memory and locks
  std::chrono::milliseconds patience{5000};         // a measuring process paused for longer is ended
  std::chrono::milliseconds between{60'000};        // interval of the checks for outdated winners
  std::chrono::nanoseconds budget{30'000'000'000};  // for each shape
  MemorySources memory;
  PressureRules pressure;
};

class BackgroundTuning {
 public:
  // The functions that the tuning thread calls.
  struct Means {
    std::function<TuningState(const RanShape&)> state;
    std::function<std::unique_ptr<PausableBench>(const RanShape&)> bench;
    std::function<Result<TuneOutcome>(const RanShape&, VariantBench&, const TuneOptions&)> tune;
    std::function<bool()> busy;       // true: other work of the runtime has priority
    std::filesystem::path turn_file;  // locked while a shape is tuned; empty: no coordination with other processes
  };

  BackgroundTuning(Means means, TuningRules rules, Log log);
  ~BackgroundTuning();
  // unavailable: the thread could not be started, and nothing is tuned.
  const Status& started() const noexcept { return started_; }
  BackgroundTuning(const BackgroundTuning&) = delete;
  BackgroundTuning& operator=(const BackgroundTuning&) = delete;

  // Call after each successful run.
  void ran(const std::string& device, const KernelSpec& spec, const std::string& name, std::uint64_t wall_ns);
  // Call on the tuning thread, in tune(): runs `work` (the build of a winner) when the runtime is idle.
  Status when_idle(const std::function<Status()>& work);
  BackgroundTuningState state() const;

  // Marks a running job for its lifetime.
  class Job {
   public:
    explicit Job(BackgroundTuning* tuning);  // nullptr: no effect
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
  // Acquires the lock between processes for one shape. false: another process holds it.
  bool take_turn();
  // Waits until a measurement may run, then marks tuning as busy. false: the tuning ends. A job pauses `bench` (may be
  // null); during a long wait bench->rest() is called.
  bool begin(PausableBench* bench);
  // Returns whether a job started during the measurement.
  bool end();
  bool has_time(std::chrono::steady_clock::time_point now);         // REQUIRES: mutex_
  bool memory_is_short(std::chrono::steady_clock::time_point now);  // on the tuning thread only

  const Means means_;
  const TuningRules rules_;
  const Log log_;
  const std::chrono::steady_clock::time_point born_;
  ShapeTimes shapes_;
  // Used by the tuning thread only:
  UniqueFd turn_;
  std::chrono::steady_clock::time_point looked_, reviewed_;
  bool memory_short_ = false;
  std::atomic<bool> stop_{false};
  mutable std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::size_t jobs_ = 0;  // running jobs
  std::chrono::steady_clock::time_point last_job_;
  bool working_ = false;
  PausableBench* bench_ = nullptr;  // the running one
  std::chrono::steady_clock::time_point begun_;
  std::optional<std::chrono::steady_clock::time_point> broken_off_;  // time when a job interrupted it
  std::chrono::nanoseconds spent_{0};
  BackgroundTuningState state_;
  Status started_;
  std::thread thread_;  // last member: it uses the others
};

}  // namespace kiln
