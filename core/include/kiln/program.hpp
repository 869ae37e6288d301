// Program: a loadable program, its serialized form (ProgramBinary), its identity (ProgramKey), and references to it.
//
// A ProgramHandle keeps a program alive across threads and until the fence of a submission. A Guard keeps programs
// alive within a scope on one thread.
// Thread-safety: keys and binaries are values; handles may be copied and destroyed on any thread; a Guard stays on its
// thread. Ownership: the cache and the handles share a program. The Device must outlive every handle.
//
//   const kiln::ProgramKey key = kiln::key_of(source, device.info(), "blur");
//   auto acquired = cache.get_or_build(key, source, device);
//   if (!acquired) return acquired.error();
//   const kiln::ProgramHandle program = acquired->program;
#pragma once

#include <kiln/digest.hpp>
#include <kiln/kernel.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace [[gnu::visibility("default")]] kiln {

struct DeviceInfo;
struct ProgramInterface;

class Program {
 public:
  Program() = default;
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  virtual ~Program();  // may run on any thread

  // Returns the bytes in memory, for the limits of the memory tier. The value is an estimate if the driver does not report it.
  virtual std::uint64_t charge() const noexcept = 0;
  // Returns the declared resources (kiln/program_interface.hpp), which the first call determines. nullptr: unknown; bindings
  // are then assigned by position. REQUIRES: the program was built from `source`. Call from any thread.
  virtual const ProgramInterface* interface(const KernelSource& source) const noexcept;
};

// A file of the driver's own cache. The driver runs the code in it without a check.
struct DriverFile {
  std::string name;  // relative path in the driver's folder (kiln/driver_cache.hpp), separated by '/'
  std::vector<std::byte> bytes;
  bool operator==(const DriverFile&) const = default;
};

struct ProgramBinary {
  std::string format;  // device-specific tag, compared before use: "gl2:875f"
  std::vector<std::byte> bytes;
  // Files of the driver's cache that the driver uses to load and dispatch the program; empty: none or unknown. Valid only for
  // a driver with the same `driver_setting` (driver_setting_of() in kiln/driver_cache.hpp).
  std::vector<DriverFile> driver_files{};
  std::string driver_setting{};
};

// Purpose of a program, for display. Empty fields are unknown.
struct ProgramPurpose {
  std::string operation;  // "conv2d"
  std::string shape;      // "1x128x28x28 k256 3x3 pad 1"
  std::string variant;    // "direct/plain"
};

// Identity by content. `material` is the canonical encoding. The entry stores it, and the cache compares it on every hit.
struct ProgramKey {
  Digest digest;
  std::string material;
  std::string label;  // label and purpose are for display only and not part of the identity
  ProgramPurpose purpose{};
};

// Encodes and hashes source, constants, workgroup, device identity, driver identity and cache schema.
ProgramKey key_of(const KernelSource& source, const DeviceInfo& device, std::string label);

class ProgramHandle {
 public:
  ProgramHandle() noexcept = default;
  explicit ProgramHandle(std::shared_ptr<const Program> program) noexcept : program_(std::move(program)) {}

  const Program* get() const noexcept { return program_.get(); }
  const Program& operator*() const noexcept { return *program_; }
  explicit operator bool() const noexcept { return program_ != nullptr; }
  // Does not keep the program alive.
  std::weak_ptr<const Program> weak() const noexcept { return program_; }

 private:
  std::shared_ptr<const Program> program_;
};

// Per-thread state of a reader in one cache, on its own cache line. Only its thread writes it.
struct alignas(64) ReaderSlot {
  std::atomic<std::uint64_t> epoch{0};  // 0: the thread holds no Guard
  std::atomic<std::uint64_t> hits{0};
  std::atomic<std::uint64_t> saved_ns{0};
  std::uint32_t guards = 0;
};

// A scope that keeps the results of a cache's find() alive. It delays freeing of evicted programs, so keep it short.
// REQUIRES: destroyed on the thread that created it.
class Guard {
 public:
  // REQUIRES: the slot belongs to this thread, `guards` includes this guard, and the epoch is set.
  explicit Guard(ReaderSlot& slot) noexcept : slot_(slot) {}
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  ~Guard() {
    if (--slot_.guards == 0) slot_.epoch.store(0, std::memory_order_release);
  }

  ReaderSlot& slot() const noexcept { return slot_; }

 private:
  ReaderSlot& slot_;
};

}  // namespace kiln
