// Devices opened by their parts: on the simulated node with the machine's own compiler, and on a fake GPU; small
// kernels.
#pragma once

#include <map>

#include "amdgpu_pm4/device/device.hpp"
#include "device/fake_winsys.hpp"

namespace kiln::amdgpu_pm4 {

struct MapNotes final : DriverNotes {
  std::optional<std::vector<std::byte>> find(std::string_view name) noexcept override;
  void keep(std::string_view name, std::span<const std::byte> bytes) noexcept override;
  std::map<std::string, std::vector<std::byte>> kept;
};

struct OpenedDevice {
  // Warns with the reason where there is no simulated node or no compiler: then the running check returns.
  static bool possible();

  OpenedDevice() { reopen(); }
  void reopen();

  std::unique_ptr<Program> build(const KernelSource& source);
  std::unique_ptr<Buffer> buffer(BufferUsage usage, std::span<const float> values);
  std::unique_ptr<Buffer> import(int fd, std::uint64_t bytes);
  // Submits one pass and waits for its end.
  Status run(const Program& program, const std::vector<Buffer*>& bindings, std::uint32_t groups = 1);
  std::vector<float> read(Buffer& buffer);

  MapNotes notes;
  WorkCounters counters;
  std::unique_ptr<Device> device;
};

// A device on a fake GPU, with a function as its compiler, which `compiler` names. The counters outlive it.
std::unique_ptr<Device> open_on(const std::shared_ptr<fake::Gpu>& gpu, WorkCounters& counters, const std::string& id,
                                const std::string& compiler, decltype(DeviceParts{}.compiler.compile) compile);

// y[i] = a * x[i] + y[i], 64 lanes a group; binding 0 is read, 1 read and written.
KernelSource saxpy(const std::string& a);
// A kernel of 64 lanes over the given bindings.
KernelSource kernel_of(std::string text, std::vector<Access> bindings);
std::vector<float> counting(std::size_t count);  // 0, 1, 2, …

}  // namespace kiln::amdgpu_pm4
