// kiln_runtime: configuration, plugins and a Runtime. kiln_job: one request with the application's tensors.
//
// Thread-safety: of a runtime every function from any thread; a job takes changes while it does not run. Ownership: a
// job borrows its runtime.
#pragma once

#include "c_interface/cache.hpp"
#include "c_interface/worker_threads.hpp"

#include <kiln.h>

#include <kiln/plugin_loader.hpp>
#include <kiln/runtime.hpp>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

struct kiln_runtime {
  kiln_runtime(kiln::Config config_read, const kiln_cache_options& options);

  const kiln::Config config;
  const kiln::c_interface::OpenedLog log;
  kiln::Registry registry;
  kiln::PluginLoader loader;
  std::unique_ptr<kiln::Runtime> runtime;    // before the registry
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
  void wait_for_all();

 private:
  std::mutex mutex_;
  std::condition_variable none_;
  std::size_t count_ = 0;
};

// A tensor of the application, and the one that a request has for it. Aligned memory is used as it is; other memory is
// copied before and after each run.
struct JobTensor {
  void* copied = nullptr;  // memory of the application; null: `host` uses it, or was filled once
  Access access = Access::invalid;
  std::shared_ptr<HostTensor> host;

  // Before and after a run.
  void to_host() const;
  void from_host() const;
};

enum class Use : std::uint8_t { invalid = 0, each_run, read_once };

// As the C struct says. invalid_argument: the error names the argument.
Result<JobTensor> tensor_of(const std::string& what, const kiln_tensor* tensor, Access access, Use use,
                            const std::shared_ptr<BorrowedTensors>& borrowed);

}  // namespace kiln::c_interface

struct kiln_job {
  enum class State : std::uint8_t { idle, running, finished };

  explicit kiln_job(kiln_runtime& of) : owner(of) {}

  kiln_runtime& owner;
  kiln::RunRequest request;
  std::vector<kiln::c_interface::JobTensor> tensors;  // of the request, in order, but the uniforms
  kiln::UserKernelSpec kernel;
  bool is_kernel = false, is_whole = false;      // whole: kernel and uniforms are in the request
  std::vector<std::vector<std::byte>> uniforms;  // values of kernel.uniforms
  std::shared_ptr<kiln::c_interface::BorrowedTensors> borrowed = std::make_shared<kiln::c_interface::BorrowedTensors>();

  std::atomic<bool> stop{false};
  std::mutex mutex;  // guards what follows
  std::condition_variable done;
  State state = State::idle;
  std::optional<kiln::RunReport> report;

  // Puts the kernel into the request. invalid_argument: nothing to run was given.
  kiln::Status complete();
  // Runs the completed request with the tensors' contents.
  kiln::RunReport run_once(kiln::RunRequest& with);
};
