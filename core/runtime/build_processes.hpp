// BuildProcesses: builds programs and tests suspect ones in child processes (kiln-probe build), at most two at a time
// and at most one per core.
//
// If a child crashes, runs out of memory or exceeds its time, only the current program fails; a new child serves the
// next. A child runs in a sandbox (base/os/sandbox.hpp): it has no network, none of the user's files and no signing
// key, and an empty folder for the driver's cache. Thread-safety: every method from any thread. Ownership: owns the
// children; the destructor ends them.
#pragma once

#include "base/os/child_process.hpp"
#include "runtime/child_protocols.hpp"

#include <kiln/clock.hpp>
#include <kiln/device.hpp>
#include <kiln/log.hpp>
#include <kiln/program_cache.hpp>

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace kiln {

class BuildProcesses {
 public:
  // Returns what a child needs to open the device; nullopt: a child cannot open it.
  using Locate = std::function<std::optional<BuildSetup>(const std::string& device)>;

  BuildProcesses(const CacheConfig& config, std::filesystem::path probe, Locate locate, Log log);
  ~BuildProcesses();

  // nullopt: build the program in this process. invalid_argument: the compiler refused it, crashed or reached a limit.
  // cancelled: the StopScope of the thread was set.
  std::optional<Result<ProgramBinary>> build(const ProgramKey& key, const KernelSource& source, const Device& device);

  // Loads and dispatches a stored program. The program is at fault if the child ends by SIGSEGV, SIGABRT, SIGBUS or
  // SIGILL, or does not answer in time. Other signals, such as SIGKILL when memory is short, are not a result.
  TrialOutcome try_stored(const ProgramKey& key, const ProgramBinary& stored, const DeviceInfo& device);

 private:
  struct Child {
    ChildProcess process;
    std::filesystem::path folder;  // for the driver's cache; empty: none
    std::string unread;
  };
  struct Pool {  // the children of one device
    std::vector<std::unique_ptr<Child>> idle;
    std::size_t lent = 0;
    bool unusable = false;  // a child could not be started, or has another driver
  };

  Result<std::unique_ptr<Child>> start(const BuildSetup& setup);
  // Returns the next frame without its length. device_lost: the child ended. Also timeout and cancelled.
  static Result<std::string> receive(Child& child, Deadline deadline);
  struct Answer {
    Result<ProgramBinary> program;
    std::string end;  // how the child ended without an answer: "ended by SIGSEGV"; empty: it answered
  };
  // nullopt: no child is available for this device.
  std::optional<Answer> ask(const std::string& device, const BuildRequest& request, std::chrono::nanoseconds limit);
  // nullopt: the child had ended before the request was sent.
  std::optional<Answer> ask_one(std::unique_ptr<Child>& child, const BuildRequest& request,
                                std::chrono::nanoseconds limit);
  void end(std::unique_ptr<Child> child);

  const CacheConfig config_;
  const std::filesystem::path probe_;
  const Locate locate_;
  const Log log_;
  const std::size_t most_;
  std::atomic<unsigned> started_{0};
  std::atomic<bool> gaps_reported_{false};
  std::mutex mutex_;
  std::condition_variable given_back_;
  std::map<std::string, Pool> pools_;  // by device; guarded by mutex_
};

}  // namespace kiln
