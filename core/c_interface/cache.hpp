// kiln_cache: a program cache of core, the devices of its keys, and the callbacks that run in it. kiln_key belongs to
// one.
//
// Thread-safety: every method from any thread. Ownership: owns the devices; the programs that it hands out do not need
// it.
#pragma once

#include "c_interface/callback_device.hpp"
#include "c_interface/handles.hpp"

#include <kiln.h>

#include <kiln/config_reader.hpp>
#include <kiln/open_program_cache.hpp>
#include <kiln/plugin_loader.hpp>
#include <kiln/registry.hpp>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace kiln::c_interface {

// Passes log lines to the application.
class CallbackLog final : public LogSink {
 public:
  CallbackLog(kiln_log_function function, void* user) noexcept : write_(function), user_(user) {}
  void write(LogLevel level, std::string_view component, std::string_view message) noexcept override;
  // Whether this thread is in the application's function: what waits for a run or a build would wait for itself. The
  // pointer is compared only.
  static bool runs_here(const CallbackLog* log) noexcept;

 private:
  const kiln_log_function write_;
  void* const user_;
};

struct OpenedLog {
  std::unique_ptr<CallbackLog> sink;  // null: silent
  LogLevel least = LogLevel::warning;

  Log log() const noexcept { return {sink.get(), least}; }
  bool runs_here() const noexcept { return sink != nullptr && CallbackLog::runs_here(sink.get()); }
  // unavailable: called by `log`. The line may have been written under a lock that the function needs.
  Status check(const char* function) const { return runs_here() ? called_by_log(function) : Status(); }

  [[gnu::cold, gnu::noinline]] static Status called_by_log(const char* function);
};
// REQUIRES: config_of() accepted `least`.
OpenedLog open_log(kiln_log_function function, void* user, kiln_log_level least, LogLevel configured);

// Returns the configuration with the members of the options that are set. `sources` may have further settings.
// invalid_argument: the error names the member.
Result<Config> config_of(const char* function, const kiln_cache_options& options, ConfigSources sources = {});

}  // namespace kiln::c_interface

struct kiln_cache {
  kiln_cache(kiln::Config config_read, const kiln_cache_options& options);

  // Two identities with equal texts and the same context are one device.
  std::shared_ptr<kiln::c_interface::CallbackDevice> device(kiln::DeviceInfo info, const void* context);
  // Call it before the device is passed to `programs`.
  void requested(kiln::c_interface::CallbackDevice& device);
  // Takes the devices out that neither a key nor a program needs. REQUIRES: mutex is held.
  void sort_out_devices();

  const kiln::c_interface::OpeningProcess process;
  const std::uint64_t id;  // of this object; another one may get its address later
  const kiln::Config config;
  const kiln::c_interface::OpenedLog log;
  kiln::c_interface::RunningCallbacks running;
  kiln::c_interface::RunningCalls calls;  // of those that build or load
  std::mutex mutex;                       // guards the devices
  // By the texts of the identity and the context.
  std::map<std::pair<std::string, const void*>, std::shared_ptr<kiln::c_interface::CallbackDevice>> devices;
  // By the texts alone, for the next context. With a folder `programs` knows a device by its address for ever: it stays
  // what it is.
  std::multimap<std::string, std::shared_ptr<kiln::c_interface::CallbackDevice>> spare_devices;
  std::size_t most_devices = 64;  // with one more, sort_out_devices() is called
  kiln::Registry registry;        // of the plugins for remotes
  kiln::PluginLoader loader;
  bool writes_remotes = false;
  std::unique_ptr<kiln::ProgramCache> programs;  // after what its programs and log lines need
  kiln::c_interface::WorkerThreads workers;      // ends before the cache
};

struct kiln_key {
  std::uint64_t cache = 0;  // kiln_cache::id
  std::shared_ptr<kiln::c_interface::CallbackDevice> device;
  kiln::ProgramKey key;
};

namespace kiln::c_interface {

// The caller's struct as this version knows it: itself if it has this version's size, as on the path of a hit, else a
// copy.
Result<const kiln_compiler*> compiler_of(const char* function, const kiln_compiler* given, kiln_compiler& copy);
// invalid_argument: NULL. unavailable: the cache of a parent process, or its `log` calls.
Status check_cache(const char* function, const kiln_cache* cache);
// The same, and invalid_argument: the key of another cache. Prepares the key's device for a request.
Status check_request(const char* function, kiln_cache* cache, const kiln_key* key);

}  // namespace kiln::c_interface

struct kiln_program {
  kiln::ProgramHandle handle;
  kiln_tier tier = KILN_TIER_NONE;
  const kiln::c_interface::OpeningProcess process{};  // a driver's objects are those of the parent

  const kiln::c_interface::CallbackProgram& program() const noexcept {
    return static_cast<const kiln::c_interface::CallbackProgram&>(*handle);
  }
};
