// Driver (the plugin's side of one API) and Device (one place where programs run: a codec and a queue).
//
// Thread-safety: every method of both may be called from any thread. A device that is bound to threads of its own
// (OpenGL) marshals. Ownership: a Driver outlives its Devices; a Device outlives its buffers, programs and dispatches.
// Enumerating is cheap and promises nothing; open() is where it may fail.
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

namespace kiln {

enum class DeviceKind : std::uint8_t { invalid = 0, cpu, gpu, software, simulated };

std::string_view to_string(DeviceKind kind) noexcept;

struct DeviceInfo {
  std::string id;  // "cpu", "opengl:0"
  DeviceKind kind = DeviceKind::invalid;
  std::string name;    // in words: "llvmpipe (LLVM 15.0.6, 256 bits)"
  std::string driver;  // in words: "Mesa 22.3.6"
  bool usable = false;
  std::string why_not;  // empty where usable

  // What a ProgramKey takes in: complete only after open().
  std::vector<std::pair<std::string, std::string>> device_identity;
  std::vector<std::pair<std::string, std::string>> driver_identity;

  std::vector<Dialect> dialects;  // best first
  std::string shared_resource;    // devices with the same text compete for it: "host-cores"; empty: none
  // The same text: the same hardware, through whichever driver: "pci:0000:03:00.0", else "drm:" and the render node's
  // path. Empty: not known, or no hardware of its own.
  std::string physical_id;
  bool serializes = false;  // serialize() and load() can work
  bool wraps_host_memory = false;
  bool shares_memory = false;  // export_fd() and import_fd can work
  std::array<std::uint32_t, 3> max_grid{65535, 65535, 65535};
  std::array<std::uint32_t, 3> max_workgroup{1, 1, 1};
  std::uint32_t max_workgroup_lanes = 1;
  std::uint32_t max_bindings = 8;
  std::uint64_t max_buffer_bytes = 0;  // 0: unknown
  // Bindings with View::texels and View::image: 0 where programs cannot have them. Texels that one such binding holds.
  std::uint32_t max_texel_bindings = 0;
  std::uint32_t max_image_bindings = 0;
  std::uint64_t max_view_texels = 0;
  std::uint32_t max_shared_bytes = 0;  // of a workgroup; 0: unknown
  std::uint32_t simd_lanes = 0;        // fp32 lanes that run in step; 0: unknown
  // GLSL: the expression that takes the place of barrier() in users' kernels, on a driver whose barrier() does not
  // order accesses to shared memory; empty: none is needed.
  std::string glsl_barrier;
  // The physical roof where it can be derived from queried facts, else 0: a measured rate above it is rejected.
  double roof_gflops = 0;
  // Whether another process that opens the device can build programs for this one (kiln/program_cache.hpp, BuildApart).
  bool builds_apart = false;
  std::string driver_cache =
      "none";  // "adopted", "not adopted", "none": whether the driver's own cache lies in Kiln's folder
};

struct PassLaunch {
  // As grid: nothing is computed and nothing needs to be bound, but the device does what it leaves until a program's
  // first dispatch, such as generating machine code.
  static constexpr std::array<std::uint32_t, 3> nothing{0, 0, 0};

  const Program* program = nullptr;
  std::span<Buffer* const> bindings;
  std::array<std::uint32_t, 3> grid{1, 1, 1};
  // Which of the bindings provides each resource of program->interface(). Empty: bindings[i] is the resource at binding
  // or argument i.
  std::span<const ResourceSource> sources{};
};

// A plan bound to buffers: its passes run in order, each seeing the writes of those before.
struct Dispatch {
  std::span<const PassLaunch> passes;
};

struct FenceResult {
  std::uint64_t device_ns = 0;  // by the device's timestamps; 0 where it has none
  std::uint64_t begun_ns = 0;   // when it began, by Device::clock_ns(); 0: unknown
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

  // The codec. build() compiles (counted in WorkCounters::builds) and its error holds the compiler's whole log.
  virtual Result<std::unique_ptr<Program>> build(const KernelSource& source) noexcept = 0;
  // corrupt or unsupported where the driver refuses the bytes: the caller rebuilds.
  virtual Result<std::unique_ptr<Program>> load(const KernelSource& source, const ProgramBinary& binary) noexcept = 0;
  // unsupported where the device keeps nothing (DeviceInfo::serializes is false).
  virtual Result<ProgramBinary> serialize(const Program& program) noexcept = 0;

  // The queue. submit() copies what it needs from the Dispatch, returns a value on this device's timeline (from 1,
  // growing), and completes in order. A device may run the work inside the call. unsupported: it refuses to run one of
  // the programs, which has hung it before, and has run nothing.
  virtual Result<std::uint64_t> submit(const Dispatch& dispatch) noexcept = 0;
  // timeout: the work may still be running, and a later wait for the same value is allowed. Each value's result may be
  // taken once; work that failed answers its Status here.
  virtual Result<FenceResult> wait(std::uint64_t value, Deadline deadline) noexcept = 0;

  // The clock by which this device's jobs are timed: the host's steady clock, or that of a simulation.
  std::uint64_t clock_ns() const noexcept { return clock_ == nullptr ? now_ns() : clock_->clock_ns(); }

 protected:
  // For a device with a clock of its own, which outlives it.
  explicit Device(const DeviceClock& clock) noexcept : clock_(&clock) {}

 private:
  const DeviceClock* const clock_ = nullptr;
};

// What a driver is given when its plugin's factory is called.
struct DriverContext {
  Log log;
  WorkCounters* counters = nullptr;       // outlives the driver
  std::filesystem::path cache_directory;  // Kiln's cache folder; may not exist
  DriverNotes* notes = nullptr;           // outlives the driver; null: nothing is kept
  PluginSettings settings;                // the checked [plugin.NAME] section, defaults filled in
};

class Driver {
 public:
  Driver() = default;
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;
  virtual ~Driver();

  // What there is, usable or not. A machine without the API or a device answers an entry that is not usable, or none.
  virtual std::vector<DeviceInfo> enumerate() = 0;
  // not_found: no such id. unavailable: it cannot be opened now, with the reason.
  virtual Result<std::unique_ptr<Device>> open(std::string_view id) noexcept = 0;
};

}  // namespace kiln
