// Small kernels, and a device, buffers and one-pass jobs to run them with.
// Thread-safety: functions assert with Catch2 and are called from a test's own thread. Ownership: values.
#pragma once

#include <kiln/device.hpp>

#include <memory>
#include <string>
#include <vector>

#include "support/plugin_under_test.hpp"

namespace kiln::support {

// The plugin and its first device. usable() is false where this machine has none, and then says so by WARN.
class OpenGl {
 public:
  explicit OpenGl(PluginSettings settings = {});
  bool usable();
  PluginUnderTest& plugin() noexcept { return plugin_; }
  Device& device();  // the first, opened at the first call

 private:
  PluginUnderTest plugin_;
  std::shared_ptr<Device> device_;
};

// That the plugin loads the libEGL of wrapping_egl.hpp.
PluginSettings with_wrapping_egl();

KernelSource saxpy();                     // y = A * x + y; constant A = 2.5; 64 lanes
KernelSource square_into_scratch();       // 0: in, 1: scratch = in²
KernelSource add_neighbour();             // 0: scratch, 1: out[i] = scratch[i] + scratch[i ^ 1]
KernelSource spin(std::uint32_t rounds);  // y[0] = a value that takes `rounds` dependent steps

std::unique_ptr<Program> build(Device& device, const KernelSource& source);
std::unique_ptr<Buffer> buffer_of(Device& device, const std::vector<float>& values,
                                  BufferUsage usage = BufferUsage::upload);
std::vector<float> contents(Buffer& buffer);

// Submits one pass and waits for it without a deadline.
Result<FenceResult> run(Device& device, const Program& program, std::vector<Buffer*> bindings,
                        std::array<std::uint32_t, 3> grid);

}  // namespace kiln::support
