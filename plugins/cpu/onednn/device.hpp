// CpuDevice: the cores of this process as a device: library programs, run within submit() on the calling thread.
//
// Thread-safety: every method from any thread; programs run one at a time, in the order of their timeline values.
// Ownership: owns its queue's results and its workspace; buffers and programs are their holders', and die before it.
// Tiles are shared out by a pool of its own, and oneDNN works alone on each thread of it: no OpenMP team is ever
// formed.
#pragma once

#include "onednn/library_program.hpp"
#include "onednn_module.hpp"

#include <map>
#include <mutex>

namespace kiln::cpu {

class CpuDevice final : public Device {
 public:
  // Throws dnnl::error where oneDNN has no engine for this processor.
  explicit CpuDevice(const OpenRequest& request);

  const DeviceInfo& info() const noexcept override { return info_; }
  Result<std::unique_ptr<Buffer>> create_buffer(const BufferDesc& desc) noexcept override;
  Result<std::unique_ptr<Program>> build(const KernelSource& source) noexcept override;
  Result<std::unique_ptr<Program>> load(const KernelSource& source, const ProgramBinary& binary) noexcept override;
  Result<ProgramBinary> serialize(const Program& program) noexcept override;
  Result<std::uint64_t> submit(const Dispatch& dispatch) noexcept override;
  Result<FenceResult> wait(std::uint64_t value, Deadline deadline) noexcept override;

 private:
  Result<FenceResult> run(const Dispatch& dispatch);

  DeviceInfo info_;
  int threads_;
  std::chrono::nanoseconds tuning_;
  std::string layout_;
  Log log_;
  WorkCounters* counters_;
  WorkerPool pool_;
  dnnl::engine engine_;

  std::mutex queue_;  // guards the stream and the workspace; held while a dispatch runs
  dnnl::stream stream_;
  Workspace workspace_;

  std::mutex results_mutex_;  // guards what follows; never held for long
  std::uint64_t last_value_ = 0;
  std::map<std::uint64_t, Result<FenceResult>> results_;  // not taken yet
};

}  // namespace kiln::cpu
