// Device: runs programs and compiles, loads and serializes them. Driver: enumerates and opens the devices of one API.
//
// Thread-safety: every method of both classes from any thread. An OpenGL device forwards calls to its own threads.
// Ownership: a Driver outlives its Devices; a Device outlives its buffers, programs and dispatches.
// Errors: enumerate() is cheap and does not verify devices; open() may fail.
//
//   auto device = driver.open("opengl:0");
//   if (!device) return device.error();
//   auto program = (*device)->build(source);  // the error has the compiler's log
#pragma once

#include <kiln/buffer.hpp>
#include <kiln/clock.hpp>
#include <kiln/config.hpp>
#include <kiln/driver_notes.hpp>
#include <kiln/kernel.hpp>
#include <kiln/log.hpp>
#include <kiln/measurement.hpp>
#include <kiln/program.hpp>
#include <kiln/program_interface.hpp>
#include <kiln/status.hpp>

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace [[gnu::visibility("default")]] kiln {

enum class DeviceKind : std::uint8_t { invalid = 0, cpu, gpu, software, simulated };

std::string_view to_string(DeviceKind kind) noexcept;

struct DeviceInfo {
  std::string id;  // "cpu", "opengl:0"
  DeviceKind kind = DeviceKind::invalid;
  std::string name;    // display name: "llvmpipe (LLVM 15.0.6, 256 bits)"
  std::string driver;  // display name: "Mesa 22.3.6"
  bool usable = false;
  std::string why_not;  // reason; empty if usable

  // Parts of the ProgramKey; complete only after open().
  std::vector<std::pair<std::string, std::string>> device_identity;
  std::vector<std::pair<std::string, std::string>> driver_identity;
  // Facts that affect only the speed of a program, such as the number of compute units. Selector and tuner learn separately
  // for different values. Not part of the ProgramKey. May be empty.
  std::vector<std::pair<std::string, std::string>> speed_identity;

  std::vector<Dialect> dialects;  // best first
  std::string shared_resource;    // devices with the same value compete for a resource: "host-cores"; empty: none
  // Equal for one hardware device under different drivers: "pci:0000:03:00.0", or "drm:" and the path of the render
  // node. Empty: unknown, or not a separate hardware device.
  std::string physical_id;
  bool serializes = false;  // serialize() and load() are supported
  bool wraps_host_memory = false;
  bool shares_memory = false;  // export_fd() and import_fd are supported
  bool shares_buffers = false;  // BufferDesc::part_of is supported
  bool runs_chains = false;     // the device's generator supports ChainSpec
  bool indirect_grids = false;  // PassLaunch::indirect is supported
  std::array<std::uint32_t, 3> max_grid{65535, 65535, 65535};
  std::array<std::uint32_t, 3> max_workgroup{1, 1, 1};
  std::uint32_t max_workgroup_lanes = 1;
  std::uint32_t max_bindings = 8;
  std::uint64_t max_buffer_bytes = 0;  // 0: unknown
  // Number of bindings with View::texels and View::image (0: not supported), and texels of one such binding.
  std::uint32_t max_texel_bindings = 0;
  std::uint32_t max_image_bindings = 0;
  std::uint64_t max_view_texels = 0;
  std::uint32_t max_shared_bytes = 0;  // per workgroup; 0: unknown
  std::uint32_t simd_lanes = 0;        // fp32 lanes that execute together; 0: unknown
  // GLSL: replacement of barrier() in user kernels, for a driver with a barrier() that does not order accesses to shared
  // memory. Empty: not needed.
  std::string glsl_barrier;
  // Peak rate in GFLOP/s, derived from queried properties; 0: unknown. Kiln rejects measurements with a higher rate.
  double roof_gflops = 0;
  // true: another process can build programs for this device (BuildApart in kiln/program_cache.hpp).
  bool builds_apart = false;
  // Location of the driver's own cache: "adopted" (in Kiln's folder), "not adopted" (elsewhere), or "none" (no such cache).
  std::string driver_cache = "none";
};

struct PassLaunch {
  // An empty grid. The dispatch computes nothing and needs no bindings. But the device does the one-time work of a program's
  // first dispatch, such as generating machine code.
  static constexpr std::array<std::uint32_t, 3> nothing{0, 0, 0};

  const Program* program = nullptr;
  std::span<Buffer* const> bindings;
  std::array<std::uint32_t, 3> grid{1, 1, 1};
  // Binding of each resource in program->interface(). Empty: bindings[i] is the resource at binding or argument i.
  std::span<const ResourceSource> sources{};
  std::optional<IndirectGrid> indirect{};  // instead of `grid`
  // false: the pass needs no barrier before it. Compare it with the last pass with `waits` and all later passes: this pass
  // does not read or write anything that they write, and does not write anything that they read. A device may ignore this.
  bool waits = true;
};

// Passes that run in order; each sees the writes of earlier passes.
struct Dispatch {
  std::span<const PassLaunch> passes;
};

// Metrics of a ChainSpec: the time of each step, and the memory of the tensors between the steps.
struct ChainFigures {
  std::vector<std::uint64_t> step_ns;
  std::uint64_t bytes = 0;
};

struct FenceResult {
  std::uint64_t device_ns = 0;  // from device timestamps; 0: not available
  std::uint64_t begun_ns = 0;   // start time by Device::clock_ns(); 0: unknown
  ChainFigures chain{};         // empty unless the dispatch was one chain
};

// The clock of a simulated device. Thread-safety: clock_ns() from any thread.
class DeviceClock {
 public:
  virtual ~DeviceClock();
  virtual std::uint64_t clock_ns() const noexcept = 0;
};

class Device {
 public:
  Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  virtual ~Device();

  virtual const DeviceInfo& info() const noexcept = 0;
  virtual Result<std::unique_ptr<Buffer>> create_buffer(const BufferDesc& desc) noexcept = 0;

  // Compiles the source and counts in WorkCounters::builds. The error has the complete log of the compiler.
  virtual Result<std::unique_ptr<Program>> build(const KernelSource& source) noexcept = 0;
  // corrupt or unsupported: the driver refused the bytes; the caller must build the program again.
  virtual Result<std::unique_ptr<Program>> load(const KernelSource& source, const ProgramBinary& binary) noexcept = 0;
  // unsupported: DeviceInfo::serializes is false.
  virtual Result<ProgramBinary> serialize(const Program& program) noexcept = 0;

  // Submits work and returns its value on the device's timeline (increasing, from 1). Work completes in order. The caller
  // may destroy the Dispatch after the call. The device may run the work before the call returns. unsupported: a program is
  // blocked because it hung the device before; nothing ran.
  virtual Result<std::uint64_t> submit(const Dispatch& dispatch) noexcept = 0;
  // Waits for a submitted value and returns the error of failed work. Returns each result once. timeout: the work may still
  // run; the caller may wait again.
  virtual Result<FenceResult> wait(std::uint64_t value, Deadline deadline) noexcept = 0;

  // Returns the time by this device's clock: the host's steady clock or a simulated clock.
  std::uint64_t clock_ns() const noexcept { return clock_ == nullptr ? now_ns() : clock_->clock_ns(); }

 protected:
  // For a device with its own clock. The clock must outlive the device.
  explicit Device(const DeviceClock& clock) noexcept : clock_(&clock) {}

 private:
  const DeviceClock* const clock_ = nullptr;
};

// Arguments of a driver factory.
struct DriverContext {
  Log log;
  WorkCounters* counters = nullptr;       // outlives the driver
  std::filesystem::path cache_directory;  // Kiln's cache folder; may not exist
  DriverNotes* notes = nullptr;           // outlives the driver; null: nothing is stored
  PluginSettings settings;                // the checked [plugin.NAME] section, defaults filled in
};

class Driver {
 public:
  Driver() = default;
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;
  virtual ~Driver();

  // Returns all devices, usable or not. On a machine without the API, returns an unusable entry or no entry. Opens no device.
  // Each entry has id, kind, dialects, shared_resource and physical_id. Limits, identity and name may be missing until the
  // device was opened.
  virtual std::vector<DeviceInfo> enumerate() = 0;
  // not_found: no such id. unavailable: the device cannot be opened now; the error has the reason.
  virtual Result<std::unique_ptr<Device>> open(std::string_view id) noexcept = 0;
};

}  // namespace kiln
