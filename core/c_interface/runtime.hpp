// kiln_runtime: configuration, plugins and a Runtime. kiln_job: one request with the application's tensors.
//
// Thread-safety: of a runtime every function from any thread; a job takes changes while it does not run. Ownership: a
// job borrows its runtime.
#pragma once

#include "c_interface/cache.hpp"
#include "c_interface/described_job.hpp"
#include "c_interface/handles.hpp"

#include <kiln.h>

#include <kiln/chrome_trace.hpp>
#include <kiln/clock.hpp>
#include <kiln/plugin_loader.hpp>
#include <kiln/runtime.hpp>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

struct kiln_runtime {
  kiln_runtime(kiln::Config config_read, const kiln_cache_options& options);

  const kiln::c_interface::OpeningProcess process;
  const kiln::Config config;
  const kiln::c_interface::OpenedLog log;
  kiln::Registry registry;
  kiln::PluginLoader loader;
  kiln::ChromeTrace trace;
  const bool is_traced;
  std::unique_ptr<kiln::Runtime> runtime;    // before the registry and the trace
  std::atomic<std::uint64_t> recorded_bytes{0};  // device memory that recorded pipelines of jobs hold, about
  kiln::c_interface::WorkerThreads workers;  // ends before the runtime
};

namespace kiln::c_interface {

// How many tensors in memory of the application a job or the device still has.
//
// Thread-safety: every method from any thread. Ownership: shared by the job and its tensors.
class BorrowedTensors {
 public:
  void add();
  void released();
  void wait_for_all() { wait_until_at_most(0); }
  void wait_until_at_most(std::size_t count);

 private:
  std::mutex mutex_;
  std::condition_variable fewer_;
  std::size_t count_ = 0;
};

// A tensor of the application, and the one that a request has for it. Aligned memory is used as it is; other memory is
// copied before and after each run.
struct JobTensor {
  void* copied = nullptr;  // memory of the application; null: `host` uses it, or was filled once
  Access access = Access::invalid;
  std::shared_ptr<HostTensor> host;  // null: not given yet

  // Whether `host` is the memory of the application itself.
  bool in_place = false;
  std::string name{};  // "buffer X"; empty: a value

  // The application's memory that a run reads or writes; empty: none.
  std::span<const std::byte> memory() const noexcept;
  // Before and after a run.
  void to_host() const;
  void from_host() const;
};

inline constexpr std::uint32_t most_rank = 32;

enum class Use : std::uint8_t { invalid = 0, each_run, read_once };

// As the C struct says. invalid_argument: the error names the argument.
Result<JobTensor> tensor_of(const std::string& what, const kiln_tensor* tensor, Access access, Use use,
                            const std::shared_ptr<BorrowedTensors>& borrowed);

}  // namespace kiln::c_interface

struct kiln_job {
  enum class State : std::uint8_t { idle, running, finished };

  explicit kiln_job(kiln_runtime& of) : owner(of) {}
  ~kiln_job() { drop_recording(); }

  kiln_runtime& owner;
  kiln::RunRequest request;
  std::vector<kiln::c_interface::JobTensor> tensors;  // of the request, in order, but the uniforms
  kiln::UserKernelSpec kernel;
  bool is_kernel = false, is_whole = false;                  // whole: complete() was called since the last change
  std::optional<kiln::c_interface::DescribedJob> described;  // `tensors` are its tensors, in order
  std::optional<kiln::PipelineRequest> pipeline;             // of a description; runs instead of `request`
  std::unique_ptr<kiln::RecordedRequests> recorded;          // of `pipeline`; null: it is recorded by each run
  std::uint64_t recorded_bytes = 0;                          // of owner.recorded_bytes
  kiln::Clock::time_point recorded_at;
  kiln::RunReport last_run;                                  // of `pipeline`, before it was recorded
  std::uint32_t runs_on_device = 0;                          // in a row, since the last change
  std::vector<std::vector<std::byte>> uniforms;              // values of kernel.uniforms
  std::shared_ptr<kiln::c_interface::BorrowedTensors> borrowed = std::make_shared<kiln::c_interface::BorrowedTensors>();

  std::atomic<bool> stop{false};
  std::mutex mutex;  // guards what follows
  std::condition_variable done;
  std::atomic<State> state{State::idle};  // may be read without the lock
  std::optional<kiln::RunReport> report;
  // Texts that kiln_job_get_report() gave. They stay, because another thread may run the job while one reads them.
  std::set<std::string> told;

  // Puts the kernel or the description into the request. invalid_argument: nothing to run was given, a tensor is
  // missing, or one that is written shares memory with another. notes: for the log, which must not be called under the
  // lock.
  kiln::Status complete(std::vector<std::string>& notes);
  kiln::Status complete_kernel();
  // The contents of the application's tensors; zeros in what a kernel writes, which may read it or leave parts of it.
  void fill_tensors() const;
  // Runs the completed request with the tensors' contents.
  kiln::RunReport run_once(kiln::RunRequest& with);
  // A pipeline that one device runs again and again is recorded and replayed.
  kiln::RunReport run_pipeline(const kiln::RunRequest& with);
  void record_pipeline();
  void drop_recording() noexcept;
};

namespace kiln::c_interface {

// invalid_argument: NULL. unavailable: the runtime of a parent process, or its `log` calls.
Status check_runtime(const char* function, const kiln_runtime* runtime);
Status check_job(const char* function, const kiln_job* job);

// Marks that this thread runs a job: closing it or its runtime from a callback would wait for itself.
class JobScope {
 public:
  explicit JobScope(const kiln_job& job) noexcept;
  JobScope(const JobScope&) = delete;
  JobScope& operator=(const JobScope&) = delete;
  ~JobScope();

  static bool runs_here(const kiln_job& job) noexcept;
  static bool runs_here(const kiln_runtime& runtime) noexcept;  // one of its jobs

 private:
  template <class IsIt>
  static bool any(const IsIt& is_it) noexcept;

  const kiln_job& job_;
  const JobScope* const outer_;
};

// Calls `change` for a job that does not run.
kiln_status* changed(const char* function, kiln_job* job, const std::function<Status(kiln_job&)>& change);
// Makes the job empty: it is no kernel, layer or description any more.
void clear(kiln_job& job);

}  // namespace kiln::c_interface
