// BuildProcesses: builds programs, and tries suspect ones, in resident children (kiln-probe build), as many at a time
// as there are cores, two at most.
//
// A child that crashes, runs out of memory or of time costs the program that it was given; the next program gets a new
// child. A child has neither the signing key nor the variables that name the user's files, and an empty folder
// for its driver's own cache. Thread-safety: every method from any thread. Ownership: owns the children, which are gone
// when it dies.
#pragma once

#include "base/os/child_process.hpp"
#include "runtime/build_protocol.hpp"

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
  // What opens the device in a child; nullopt: it cannot be opened there.
  using Locate = std::function<std::optional<BuildSetup>(const std::string& device)>;

  BuildProcesses(const CacheConfig& config, std::filesystem::path probe, Locate locate, Log log);
  ~BuildProcesses();

  // nullopt: the program is to be built in this process. invalid_argument: the compiler refused it, crashed, or
  // reached a limit. cancelled: the thread's StopScope was set.
  std::optional<Result<ProgramBinary>> build(const ProgramKey& key, const KernelSource& source, const Device& device);

  // Loads and dispatches a stored program. It died of it: the child ended by SIGSEGV, SIGABRT, SIGBUS or SIGILL, or did
  // not answer in time. What others send to a process, as SIGKILL where memory is short, says nothing of the program.
  TrialOutcome try_stored(const ProgramKey& key, const ProgramBinary& stored, const DeviceInfo& device);

 private:
  struct Child {
    ChildProcess process;
    std::filesystem::path folder;  // of its driver's own cache; empty: it has none
    std::string unread;
  };
  struct Pool {  // the children of one device
    std::vector<std::unique_ptr<Child>> idle;
    std::size_t lent = 0;
    bool unusable = false;  // a child could not be started, or has another driver
  };

  Result<std::unique_ptr<Child>> start(const BuildSetup& setup);
  // The next frame of the child, without its length. device_lost: it ended. timeout, cancelled.
  static Result<std::string> receive(Child& child, Deadline deadline);
  struct Answer {
    Result<ProgramBinary> program;
    std::string end;  // how the child ended that was to answer: "ended by SIGSEGV"; empty: it answered
  };
  // nullopt: no child can be asked for this device.
  std::optional<Answer> ask(const std::string& device, const BuildRequest& request, std::chrono::nanoseconds limit);
  // nullopt: the child had ended before it was asked.
  std::optional<Answer> ask_one(std::unique_ptr<Child>& child, const BuildRequest& request,
                                std::chrono::nanoseconds limit);
  void end(std::unique_ptr<Child> child);

  const CacheConfig config_;
  const std::filesystem::path probe_;
  const Locate locate_;
  const Log log_;
  const std::size_t most_;
  std::atomic<unsigned> started_{0};
  std::mutex mutex_;
  std::condition_variable given_back_;
  std::map<std::string, Pool> pools_;  // by device; guarded by mutex_
};

}  // namespace kiln
