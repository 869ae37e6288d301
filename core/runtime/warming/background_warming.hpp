// BackgroundWarming: what [cache] warm asks for, done on a thread of its own behind the jobs: programs are linked and
// dispatched once, one after another, on every device that [device] prefer opens.
//
// Jobs go first: it waits while one runs, for the first ones as long as they take, later for a tenth of a second a
// program at most, so that a service that never rests is warmed too. It waits while memory is short. What a job asks
// for meanwhile is not done twice: both go by way of the cache. Thread-safety: every method from any thread. Ownership:
// borrows the devices, the cache and the trace's sink, which outlive it; the destructor ends it after the program that
// is in the works.
#pragma once

#include "cache/pressure/memory_reading.hpp"
#include "cache/pressure/pressure_decision.hpp"
#include "runtime/devices/device_table.hpp"

#include <kiln/config.hpp>
#include <kiln/runtime.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace kiln {

struct WarmingRules {
  MemorySources memory;
  PressureRules pressure;
  std::chrono::milliseconds grace{250};      // for the first job to come, once the devices are open
  std::chrono::milliseconds most_wait{100};  // for jobs, a program, once one has ended
  std::chrono::milliseconds look{250};       // how often memory is looked at
};

// Whether what the system says leaves room for programs that nobody waits for: between the two bounds, as before.
bool memory_is_short(const MemoryReading& reading, bool before, const PressureRules& rules);

// What tuning left on a device: shapes that have a winner, and the winners' programs.
struct TunedPrograms {
  std::set<std::pair<std::string, std::string>> shapes;  // operation and shape, as ProgramPurpose has them
  std::set<Digest> winners;

  // It is of such a shape, which another variant serves now.
  bool supersede(const KeptProgram& program) const;
};

// At most so many of those that lie on disk for the device: those first that spare most, the superseded last.
std::vector<KeptProgram> kept_programs(ProgramCache& cache, const Device& device, std::size_t most,
                                       const TunedPrograms& tuned);

// The programs that [cache] warm means, of those.
std::vector<KeptProgram> programs_to_warm(const CacheConfig& config, ProgramCache& cache, const Device& device,
                                          const TunedPrograms& tuned = {});

class BackgroundWarming {
 public:
  // Answers the devices to warm, opened; called on the warming's thread.
  using Open = std::function<std::vector<std::shared_ptr<Device>>()>;
  using Tuned = std::function<TunedPrograms(const Device&)>;  // likewise

  BackgroundWarming(const CacheConfig& config, Open open, ProgramCache& cache, WarmingRules rules = {},
                    Tuned tuned = {}, TraceSink* trace = nullptr);
  ~BackgroundWarming();
  // unavailable: the system gives no thread, and nothing is done.
  const Status& started() const noexcept { return started_; }
  BackgroundWarming(const BackgroundWarming&) = delete;
  BackgroundWarming& operator=(const BackgroundWarming&) = delete;

  WarmingState state() const;

  // A scope in which a job runs.
  class Job {
   public:
    explicit Job(BackgroundWarming* warming);  // nullptr: nothing is warmed
    ~Job();
    Job(const Job&) = delete;
    Job& operator=(const Job&) = delete;

   private:
    BackgroundWarming* const warming_;
  };

 private:
  void work();
  void warm(Device& device);
  // Waits for jobs and for memory. false: it shall end.
  bool await_turn();
  bool await_memory(std::unique_lock<std::mutex>& lock);

  const CacheConfig config_;
  const Open open_;
  ProgramCache& cache_;
  const WarmingRules rules_;
  const Tuned tuned_;
  TraceSink* const trace_;
  std::atomic<bool> stop_{false};
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::size_t jobs_ = 0;  // that run now
  bool job_ended_ = false;
  bool memory_short_ = false;
  std::chrono::steady_clock::time_point looked_{};
  WarmingState state_{.running = true};
  Status started_;
  std::thread thread_;  // last: it uses the rest
};

}  // namespace kiln
