// The cpu plugin as the tests use it: opened once, and run on tensors that wrap guarded host memory.
//
// Thread-safety: shared_cpu() and the methods from the test's thread, but for device(). Ownership: shared_cpu() lives
// until the process ends its main(); a Job owns its memory, buffers and program and dies before its device.
#pragma once

#include <kiln/device.hpp>
#include <kiln/kernel_generator.hpp>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "support/plugin_under_test.hpp"

namespace kiln::cpu_test {

struct OpenedCpu {
  explicit OpenedCpu(PluginSettings settings = {}, Log log = {});

  support::PluginUnderTest plugin;
  std::shared_ptr<Device> device;
  std::shared_ptr<KernelGenerator> generator;
};

// Whether oneDNN was in the process's memory when the first of all had enumerated and not yet opened its device.
bool onednn_preceded_open();

// With default settings.
OpenedCpu& shared_cpu();

// Whether a file whose name contains `part` is mapped into this process.
bool is_mapped(const std::string& part);

KernelSource source_of(const KernelSpec& spec);

// Host memory of a tensor between two guards, 64-byte aligned.
class GuardedTensor {
 public:
  explicit GuardedTensor(std::uint64_t bytes);
  std::span<float> values() noexcept;
  std::span<std::byte> bytes() noexcept;
  bool guards_intact() const noexcept;

 private:
  std::vector<std::byte> memory_;
  std::size_t begin_ = 0;
  std::size_t size_ = 0;
};

// One spec on one device: buffers that wrap guarded tensors, inputs random from the seed, the output poisoned with NaN.
class Job {
 public:
  // Throws std::runtime_error with the status text where the program cannot be built.
  Job(Device& device, const KernelSpec& spec, std::uint64_t seed);

  Result<std::uint64_t> submit();
  Status run();   // submit and wait
  void poison();  // the output again
  // What is wrong with the output or the guards; empty: nothing.
  std::string difference();

  std::span<const float> output() { return tensors_.back().values(); }

 private:
  Device& device_;
  KernelSpec spec_;
  std::vector<std::shared_ptr<HostTensor>> inputs_;  // what the device is given, kept apart from it
  std::vector<GuardedTensor> tensors_;
  std::unique_ptr<Program> program_;
  std::vector<std::unique_ptr<Buffer>> buffers_;
  std::vector<Buffer*> bindings_;
};

}  // namespace kiln::cpu_test
