// warm_programs: takes programs into memory, from disk as a rule, and makes each one's first dispatch, over nothing, so
// that no job pays for either.
//
// What is built is dispatched some builds later: by then the driver has written the code that it made into its own
// cache. On an empty cache processes that warm one list share the work: each builds a part of it. Thread-safety: any
// thread, beside jobs; as many threads work as are asked for, the caller's among them. Ownership: borrows everything
// for the call.
#pragma once

#include "base/os/memory_pressure.hpp"
#include "runtime/device_table.hpp"

#include <kiln/config.hpp>
#include <kiln/run_request.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace kiln {

// told: what is so far, after each program that was acquired and at the end; one call at a time, on the thread that
// works on it. patience: for one first dispatch, in which a driver may generate code; a device that takes longer hangs,
// which is that program's failure, `timeout`, and the end of the warming. trace: told the first dispatches.
constexpr std::chrono::nanoseconds most_for_first_dispatch = std::chrono::seconds(60);
WarmReport warm_programs(const std::vector<KeptProgram>& programs, Device& device, ProgramCache& cache,
                         const WarmRequest& request, unsigned threads = 1,
                         const std::function<void(const WarmReport&)>& told = {},
                         std::chrono::nanoseconds patience = most_for_first_dispatch, TraceSink* trace = nullptr);

// Threads for who has nothing better to do with the processor than to build.
unsigned building_threads() noexcept;

// BackgroundBuilder: one thread that does named pieces of work once each, beside the jobs: building programs ahead.
//
// Thread-safety: every method from any thread. Ownership: owns its thread, which starts with the first piece; the
// destructor drops what has not begun and waits for what has.

class BackgroundBuilder {
 public:
  BackgroundBuilder() = default;
  BackgroundBuilder(const BackgroundBuilder&) = delete;
  BackgroundBuilder& operator=(const BackgroundBuilder&) = delete;
  ~BackgroundBuilder();

  // False where a piece of that name was asked for before, done or not.
  bool ask(const std::string& name, std::function<void()> work);
  bool was_asked(const std::string& name) const;
  bool idle() const;

 private:
  void serve();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  std::set<std::string> asked_;
  bool busy_ = false;
  bool ending_ = false;
  std::thread thread_;
};

// BackgroundWarming: what [cache] warm asks for, done on a thread of its own behind the jobs: programs are linked and
// dispatched once, one after another, on every device that [device] prefer opens.
//
// Jobs go first: it waits while one runs, for the first ones as long as they take, later for a tenth of a second a
// program at most, so that a service that never rests is warmed too. It waits while memory is short. What a job asks
// for meanwhile is not done twice: both go by way of the cache. Thread-safety: every method from any thread. Ownership:
// borrows the devices, the cache and the trace's sink, which outlive it; the destructor ends it after the program that
// is in the works.

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
