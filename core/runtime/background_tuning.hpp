// BackgroundTuning: what [generator] background asks for: shapes that jobs ran are tuned on a thread of its own while
// no job runs, those first that took most time.
//
// Jobs go first: a job that comes finds what was being measured standing still, and what it broke off is measured again
// once no job has run for a while. It waits for its share of the time that the runtime has lived, while memory is
// short, while the runtime builds or warms, and while another process tunes for the same folder. Thread-safety: every
// method from any thread. Ownership: what its functions need outlives it; the destructor ends the measurement in the
// works, and its process, at once, and waits for a build that publishes a winner.
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

// ShapeTimes: how long each shape ran on each device in this process, so that what took most is tuned first.
//
// Thread-safety: every method from any thread; a run pays one lock, for a look-up. Ownership: values. Bounded: after
// 4,096 shapes no new one is taken in. Specs of users' own kernels, which only their own files can measure, are not.

struct RanShape {
  std::string device;  // an id
  KernelSpec spec;
  std::string name;  // of the job that ran it first

  bool operator==(const RanShape& other) const { return device == other.device && spec == other.spec; }
};

class ShapeTimes {
 public:
  void ran(const std::string& device, const KernelSpec& spec, const std::string& name, std::uint64_t ns);
  // The shape that took most time of those that wait; absent: none waits.
  std::optional<RanShape> next() const;
  std::size_t waiting() const;
  // It waits no longer. wait_again(): those that ran since do again.
  void settle(const RanShape& shape);
  void wait_again();
  // It never does.
  void give_up(const RanShape& shape);

 private:
  struct Hash {
    std::size_t operator()(const RanShape& shape) const noexcept;
  };
  struct Times {
    std::uint64_t ns = 0;
    bool waits = true;
    bool ran_since = false;  // it was settled
    bool given_up = false;
  };

  mutable std::mutex mutex_;
  std::unordered_map<RanShape, Times, Hash> shapes_;
};

// PausableBench: a bench that gives way at once, from another thread, to who has a job to run.
//
// Thread-safety: pause() and resume() from any thread; the rest from the thread that measures. Ownership: the caller's.

class PausableBench : public VariantBench {
 public:
  // From its return on nothing is computed until resume(). A measurement in the works answers `cancelled` soon, and so
  // does one that is begun meanwhile.
  virtual void pause() noexcept = 0;
  virtual void resume() noexcept = 0;
  // Gives back what it holds while it is not needed; the next measurement gets it again.
  virtual void rest() noexcept = 0;
};

// AskedTuning: that a process tunes because somebody asked it to, as other processes on its cache folder see it: a lock
// on a file there. Two that measure would disturb one another, so a second one waits, and tuning in the background
// does nothing meanwhile.
//
// Thread-safety: pure calls of the operating system. Ownership: the turn is its holder's, and ends with its process.

// Waits for its turn, and says so once. cancelled: `stop` (which may be null) became true before. An empty descriptor:
// there is no folder that can be written, so that no other process is thought of.
Result<UniqueFd> take_asked_turn(const std::filesystem::path& folder, const std::atomic<bool>* stop, const Log& log);

// Whether a process has such a turn now, this one included.
bool is_asked_turn_taken(const std::filesystem::path& folder) noexcept;

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
