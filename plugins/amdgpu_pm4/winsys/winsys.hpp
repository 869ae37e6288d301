// Winsys: the seam between the plugin and the kernel driver, with node facts, errors and buffer placement.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/buffer.hpp>
#include <kiln/clock.hpp>
#include <kiln/status.hpp>

namespace kiln::amdgpu_pm4 {

// NodeFacts: what the amdgpu kernel interface tells about one render node, read once when it is opened.
//
// Thread-safety and ownership: values.

struct MemoryFacts {
  std::uint64_t vram_bytes = 0;
  std::uint64_t visible_vram_bytes = 0;  // of it, what the host can map; all of it where the BAR is resizable
  std::uint64_t gtt_bytes = 0;           // system memory that the GPU reaches
  std::uint64_t most_vram_bytes = 0;     // of one allocation
  std::uint64_t most_gtt_bytes = 0;

  bool whole_vram_visible() const noexcept { return visible_vram_bytes >= vram_bytes; }
};

struct ComputeRingFacts {
  std::uint32_t rings = 0;  // bit i: ring i takes submissions; 0: there is none
  std::uint32_t ib_start_alignment = 0;
  std::uint32_t ib_size_alignment = 0;
};

struct NodeFacts {
  std::string path;            // "/dev/dri/renderD128"
  std::string marketing_name;  // empty: unknown
  std::uint32_t family = 0;
  std::uint32_t external_revision = 0;
  std::uint32_t device_id = 0;
  std::uint32_t pci_revision = 0;
  std::uint32_t interface_major = 0;  // of the kernel driver: 3
  std::uint32_t interface_minor = 0;
  std::string library;  // which libdrm_amdgpu serves, by its build-id
  std::uint32_t shader_engines = 0;
  std::uint32_t arrays_per_engine = 0;
  std::uint32_t compute_units = 0;
  std::uint64_t engine_khz = 0;   // the most
  std::uint64_t counter_khz = 0;  // of the clock that timestamps come from
  std::uint64_t address_alignment = 0;
  std::uint64_t fragment_bytes = 0;  // large buffers at multiples of it are mapped by larger pages
  MemoryFacts memory;
  ComputeRingFacts compute;
};

// Winsys: one opened render node as the rest of the plugin sees it: buffers in the GPU's address space, contexts that
// take command buffers, timelines that tell when they are done. Everything that talks to the kernel is behind it; tests
// put another one there.
//
// Thread-safety: every method of every class from any thread. Ownership: a Winsys outlives what it made; a buffer is
// destroyed only when no submission that lists it is in flight.
//
// Failures are typed: timeout (still running at the deadline), cancelled (the context was lost to a reset; a new one
// works), device_lost (the device is gone), unavailable (out of memory, or not permitted), invalid_argument (the kernel
// refused a value), io (anything else); each names the call and what it was about.

enum class Heap : std::uint8_t { invalid = 0, vram, gtt, vram_or_gtt };
// How the host sees a buffer. write_combined: fast to fill in order, slow to read.
enum class HostMapping : std::uint8_t { invalid = 0, none, write_combined, cached };
// What the GPU may do with it; no more than its use needs.
enum class GpuAccess : std::uint8_t { invalid = 0, read, read_write, read_execute };

struct Placement {
  Heap heap = Heap::invalid;
  HostMapping host = HostMapping::invalid;
  bool operator==(const Placement&) const = default;
};

struct BufferRequest {
  std::uint64_t bytes = 0;      // rounded up to whole pages
  std::uint64_t alignment = 0;  // of its address; 0: a page. A power of two.
  Placement placement;
  GpuAccess access = GpuAccess::invalid;
};

// A buffer object, mapped at one place of the GPU's address space for its whole life.
class BufferObject {
 public:
  BufferObject() = default;
  BufferObject(const BufferObject&) = delete;
  BufferObject& operator=(const BufferObject&) = delete;
  virtual ~BufferObject();

  virtual std::uint64_t address() const noexcept = 0;
  virtual std::uint64_t bytes() const noexcept = 0;   // whole pages
  virtual std::uint32_t handle() const noexcept = 0;  // names it in buffer lists
  virtual GpuAccess access() const noexcept = 0;
  virtual std::span<std::byte> mapped() noexcept = 0;  // empty where the host has no mapping
  virtual Result<UniqueFd> export_fd() noexcept = 0;   // a dma-buf
};

// A sync object whose points are passed in order.
class Timeline {
 public:
  Timeline() = default;
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;
  virtual ~Timeline();

  virtual std::uint32_t handle() const noexcept = 0;
  // ok: the point is passed, by work that may have failed (Context::outcome tells). timeout: not by the deadline.
  virtual Status wait(std::uint64_t point, Deadline deadline) noexcept = 0;
  virtual Result<std::uint64_t> passed() noexcept = 0;  // the highest point that is
  virtual Status signal(std::uint64_t point) noexcept = 0;
  // A sync_file that is signalled with the point, for other drivers. REQUIRES: the point's work was submitted.
  virtual Result<UniqueFd> export_sync_file(std::uint64_t point) noexcept = 0;
  // The point is passed when the sync_file of another driver is signalled; the descriptor stays the caller's.
  // REQUIRES: the point lies beyond those that are submitted.
  virtual Status import_sync_file(std::uint64_t point, int fd) noexcept = 0;
};

struct CommandRange {  // of one indirect buffer
  std::uint64_t address = 0;
  std::uint32_t bytes = 0;
};

struct SyncPoint {
  std::uint32_t timeline = 0;  // Timeline::handle()
  std::uint64_t point = 0;
};

struct CommandSubmission {
  std::span<const CommandRange> commands;  // run in order, one after the other
  std::span<const std::uint32_t> buffers;  // handles of all that the GPU may touch, each once
  std::span<const SyncPoint> waits;
  std::span<const SyncPoint> signals;
  std::uint32_t ring = 0;  // of the compute rings
};

struct ResetState {
  bool reset = false;      // since the context was made
  bool vram_lost = false;  // with all that was in it
  bool guilty = false;     // work of this context caused it
  bool in_progress = false;
  // What the device says of the fault that caused it, as "unmapped at 0x…: …". Empty: it says nothing, as cards do.
  std::string fault;
};

struct Outcome {
  Status how;
  bool own_fault = false;  // the kernel driver gave this very work up
};

class Context {
 public:
  Context() = default;
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  virtual ~Context();

  // The submission's number in this context, from 1. cancelled: also where earlier work of this context was given up.
  virtual Result<std::uint64_t> submit(const CommandSubmission& submission) noexcept = 0;
  // How a submission ended. timeout: it has not by the deadline.
  virtual Outcome outcome(std::uint64_t submission, std::uint32_t ring, Deadline deadline) noexcept = 0;
  virtual Result<ResetState> reset_state() noexcept = 0;
};

enum class Priority : std::uint8_t { invalid = 0, low, normal, high };

class Winsys {
 public:
  Winsys() = default;
  Winsys(const Winsys&) = delete;
  Winsys& operator=(const Winsys&) = delete;
  virtual ~Winsys();

  virtual const NodeFacts& facts() const noexcept = 0;
  virtual Result<std::unique_ptr<BufferObject>> create_buffer(const BufferRequest& request) noexcept = 0;
  // The memory behind a dma-buf, of any driver that shares with amdgpu; the descriptor stays the caller's. Mapped for
  // the host where its driver allows.
  virtual Result<std::unique_ptr<BufferObject>> import_buffer(int fd, GpuAccess access) noexcept = 0;
  // unavailable: the user may not have this priority.
  virtual Result<std::unique_ptr<Context>> create_context(Priority priority) noexcept = 0;
  virtual Result<std::unique_ptr<Timeline>> create_timeline() noexcept = 0;
  // The clock that timestamps come from, now.
  virtual Result<std::uint64_t> counter() noexcept = 0;
  // How often the device has lost its memory since the kernel driver was loaded.
  virtual Result<std::uint32_t> vram_losses() noexcept = 0;
};

// Error numbers of the kernel interface as typed Statuses.
//
// Thread-safety: a pure function. Ownership: values.

// The Status of a call that answered `error`, a negative (or positive) error number; ok for 0. winsys.hpp says which is
// which. `doing` names the call and its object.
Status status_of(int error, std::string_view doing);

// The same of work that has ended. ETIME and ENODATA are then how it ended, after a reset of its ring or of its waves
// alone, and no timeout: cancelled.
Outcome outcome_of(int error, std::string_view doing);

// Where buffers are put, by what they are for and what the device's memory is like.
//
// Thread-safety: pure functions. Ownership: values.
//
// What programs read and write again and again lies in VRAM. Where the host can map all of VRAM it fills buffers there
// directly; where it sees only a window, the kernel driver keeps what fits into the window there and puts the rest into
// system memory, and what the host writes for each job lies in system memory at once. What the host reads lies in
// system memory that it may cache: reading VRAM, or write-combined memory, takes it some hundred times longer.

enum class BufferUse : std::uint8_t {
  invalid = 0,
  upload,     // written by the host for each job, read by programs
  readback,   // written by programs, read by the host
  storage,    // programs read and write it
  constant,   // written once by the host
  code,       // machine code
  commands,   // indirect buffers
  arguments,  // kernarg segments
  reports,    // timestamps and progress
  scratch,    // private memory of lanes; never the host's
};

Placement placement_of(BufferUse use, const MemoryFacts& memory) noexcept;
GpuAccess access_of(BufferUse use) noexcept;
// The most bytes that one buffer of that use can have.
std::uint64_t most_bytes(BufferUse use, const MemoryFacts& memory) noexcept;

// NodeSource: what the system tells about render nodes, as a table of functions so that tests can put other nodes
// there.
//
// Thread-safety: the functions may be called from any thread. Ownership: answers are values; no descriptor outlives a
// call, but in the Winsys that open() answers.

struct RenderNode {  // told without opening the node
  std::string path;  // "/dev/dri/renderD128"
  std::uint16_t vendor = 0;
  std::uint16_t device = 0;
  std::string bus;  // "0000:03:00.0"
};

struct NodeVersion {   // the kernel driver's
  std::string name;    // "amdgpu"
  std::string number;  // "3.49.0"
  std::string description;
};

struct NodeSource {
  // Every render node on PCI, of any vendor. Opens none.
  std::function<Result<std::vector<RenderNode>>()> list;
  // Opens the node, asks for the driver's version, and nothing else. unavailable: the system refused, with its reason.
  std::function<Result<NodeVersion>(const RenderNode&)> version;
  // Opens the node for work, and reads what it tells. For real hardware only where the user opted in. REQUIRES: its
  // driver is amdgpu.
  std::function<Result<std::unique_ptr<Winsys>>(const RenderNode&)> open;
};

// The nodes of this system, through libdrm and libdrm_amdgpu.
NodeSource libdrm_nodes();

}  // namespace kiln::amdgpu_pm4
