// Program (built and loadable), ProgramBinary (its serialized bytes), ProgramKey (its identity), and the two ways to
// hold one: ProgramHandle pins across threads and through a submission until its fence; Guard pins within a scope on
// one thread.
//
// Thread-safety: keys and binaries are values; a handle may be copied and dropped on any thread; a Guard stays on the
// thread that made it. Ownership: the cache and the handles own a program together; a Program keeps alive what it needs
// of its device, and the Device object outlives every handle.
#pragma once

#include <kiln/digest.hpp>
#include <kiln/kernel.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace kiln {

struct DeviceInfo;
struct ProgramInterface;

class Program {
 public:
  Program() = default;
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  virtual ~Program();  // may run on any thread

  // Bytes this program holds in memory: what the memory tier charges. An estimate where the driver does not tell.
  virtual std::uint64_t charge() const noexcept = 0;
  // The resources that the program declares (kiln/program_interface.hpp), determined at the first call. nullptr: not
  // known; bindings go by position. REQUIRES: `source` is what the program was built from. Any thread.
  virtual const ProgramInterface* interface(const KernelSource& source) const noexcept;
};

// A file of a driver's own cache: machine code that the driver runs without a check of its own.
struct DriverFile {
  std::string name;  // its path within the driver's folder (kiln/driver_cache.hpp), parts separated by '/'
  std::vector<std::byte> bytes;
  bool operator==(const DriverFile&) const = default;
};

struct ProgramBinary {
  std::string format;  // the device's own tag, compared before the bytes are used: "gl:875f"
  std::vector<std::byte> bytes;
  // Every file of the driver's own cache that loading and dispatching the binary reads or writes; empty: none, or not
  // known. They fit only a driver with the same `driver_setting` (driver_setting_of() in kiln/driver_cache.hpp).
  std::vector<DriverFile> driver_files{};
  std::string driver_setting{};
};

// What a program was made for, in words for people; empty where it is not known.
struct ProgramPurpose {
  std::string operation;  // "conv2d"
  std::string shape;      // "1x128x28x28 k256 3x3 pad 1"
  std::string variant;    // "direct/plain"
};

// Identity by content. `material` is the canonical encoding that is stored with the entry and compared on every hit.
struct ProgramKey {
  Digest digest;
  std::string material;
  std::string label;  // this and what follows: for people; not part of the identity
  ProgramPurpose purpose{};
};

// Source, constants, workgroup, device identity, driver identity and cache schema, encoded and digested.
ProgramKey key_of(const KernelSource& source, const DeviceInfo& device, std::string label);

class ProgramHandle {
 public:
  ProgramHandle() noexcept = default;
  explicit ProgramHandle(std::shared_ptr<const Program> program) noexcept : program_(std::move(program)) {}

  const Program* get() const noexcept { return program_.get(); }
  const Program& operator*() const noexcept { return *program_; }
  explicit operator bool() const noexcept { return program_ != nullptr; }

 private:
  std::shared_ptr<const Program> program_;
};

// One thread's line of memory in one cache: the epoch in which it reads, and what it counts without sharing a line with
// another thread. Only that thread writes it.
struct alignas(64) ReaderSlot {
  std::atomic<std::uint64_t> epoch{0};  // 0: the thread holds no Guard
  std::atomic<std::uint64_t> hits{0};
  std::atomic<std::uint64_t> saved_ns{0};
  std::uint32_t guards = 0;
};

// A scope in which what a cache's find() answered stays alive. REQUIRES: it ends on the thread that made it. The
// outermost of a thread's guards holds back what other threads evict: keep it short.
class Guard {
 public:
  // REQUIRES: the slot is this thread's, its guards are counted with this one, and its epoch is told.
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
