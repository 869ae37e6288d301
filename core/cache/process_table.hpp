// ProcessTable: the file `processes` in a device folder, with which processes coordinate builds and detect crashes
// during loads.
//
// The file has one slot of 2048 bytes for each process. Fixed-width text lets a process overwrite one mark without
// touching others:
//
//   header  "process PID since SECONDS", blanks, newline                                            (128 bytes)
//   marks   20 times "loading  DIGEST SECONDS" or "building DIGEST SECONDS" or nothing, blanks, newline (96 each)
//
// Seconds are since 1970. Text that does not parse is ignored; only this user can write the file.
// Thread-safety: text functions are pure; see the classes. Ownership: values; see ProcessTable.
#pragma once

#include "base/os/file_lock.hpp"
#include "cache/device_folder.hpp"
#include "cache/history.hpp"

#include <kiln/buffer.hpp>
#include <kiln/digest.hpp>
#include <kiln/log.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

inline constexpr const char* processes_name = "processes";
inline constexpr std::size_t slot_header_bytes = 128;
inline constexpr std::size_t mark_bytes = 96;
inline constexpr std::size_t marks_per_slot = 20;
inline constexpr std::size_t slot_bytes = slot_header_bytes + marks_per_slot * mark_bytes;  // 2048

enum class Doing : std::uint8_t {
  invalid = 0,
  loading,   // the driver is loading the stored bytes
  building,  // the process holds the lease
};

struct ProcessMark {
  Doing doing = Doing::invalid;
  Digest digest;
  std::int64_t since_s = 0;
};

using MarkText = std::array<char, mark_bytes>;

MarkText encode_mark(const ProcessMark& mark) noexcept;
MarkText no_mark() noexcept;
std::optional<ProcessMark> decode_mark(std::string_view text) noexcept;

// Returns a slot without marks. pid 0: the slot is free.
std::string encode_slot(long pid, std::int64_t since_s);
std::optional<long> pid_of_slot(std::string_view slot) noexcept;
std::vector<ProcessMark> marks_of_slot(std::string_view slot);

// How a cache shares work with other processes. Tests set other values.
struct ProcessSharing {
  // Longest wait for a build of another process. A build takes up to some seconds; a stopped process never finishes.
  std::chrono::nanoseconds patience = std::chrono::seconds(5);
  std::function<Result<FilesystemMagic>(int file)> filesystem = &filesystem_of;
  // Longest wait for a build or load of another thread of this process. It is longer than `patience` because that
  // thread may itself wait for a process or the driver, and because a caller that times out gets no program.
  std::chrono::nanoseconds flight_patience = std::chrono::seconds(30);
  // Longest first dispatch of a stored program with driver files. A driver loads machine code in milliseconds; if the
  // files do not match it compiles, which takes seconds.
  std::chrono::nanoseconds dispatch_patience = std::chrono::seconds(30);
};

class ProcessTable;

// Holds a mark in the slot of this process for its lifetime. Empty if there is no table or no free place.
class LoadGuard {
 public:
  LoadGuard() noexcept = default;
  LoadGuard(LoadGuard&& other) noexcept : table_(std::exchange(other.table_, nullptr)), place_(other.place_) {}
  LoadGuard& operator=(LoadGuard&& other) noexcept;
  ~LoadGuard();

  explicit operator bool() const noexcept { return table_ != nullptr; }

 private:
  friend class ProcessTable;
  LoadGuard(ProcessTable& table, std::size_t place) noexcept : table_(&table), place_(place) {}

  ProcessTable* table_ = nullptr;
  std::size_t place_ = 0;
};

// Holds the right to build one program for its lifetime.
class Lease {
 public:
  enum class State : std::uint8_t {
    invalid = 0,
    held,
    busy,  // another process or thread holds it
    none,  // leases are not available; every process builds for itself
  };

  explicit Lease(State state) noexcept : state_(state) {}
  Lease(Lease&& other) noexcept;
  ~Lease();

  State state() const noexcept { return state_; }

 private:
  friend class ProcessTable;
  Lease(ProcessTable& table, std::uint64_t byte, LoadGuard mark) noexcept
      : state_(State::held), table_(&table), byte_(byte), mark_(std::move(mark)) {}

  State state_;
  ProcessTable* table_ = nullptr;  // set if held
  std::uint64_t byte_ = 0;
  LoadGuard mark_;
};

// Coordinates the processes that use one device folder. Locks on single bytes of the file carry the state, so the
// kernel releases it when a process ends for any reason:
//
//   byte (first 62 bits of a digest)   locked: a process builds that program
//   byte 2^62 + n                      locked: the process of slot n is alive, so its marks are not orphans
//
// A process reuses the first slot without a living owner; the file needs no cleanup. If the file is not available or
// the filesystem's locks are not reliable, there are no leases and no marks, and this is logged once.
// Thread-safety: every method from any thread. Ownership: owns its descriptor; borrows the folder. REQUIRES: outlives
// its leases and marks.
class ProcessTable {
 public:
  // Called for each program that a process was loading when it died, when the file is opened.
  using OnOrphan = std::function<void(const ProcessMark& mark)>;

  ProcessTable(DeviceFolder& folder, const ProcessSharing& sharing, Log log, OnOrphan on_orphan);
  ~ProcessTable();

  // Opens the table if the file exists, and so reports orphaned marks. Cheap when called again.
  void attend() { static_cast<void>(open(Create::no)); }

  Lease try_lease(const Digest& digest);
  // Hold the guard while a driver loads the stored bytes of the program.
  LoadGuard loading(const Digest& digest);

 private:
  friend class LoadGuard;
  friend class Lease;

  enum class State : std::uint8_t { invalid = 0, unopened, open, off };

  State open(Create create);
  State switch_off(const std::string& why);
  // Claims a slot for this process and processes the marks of slots without a living owner. REQUIRES: mutex_ is held.
  void claim_slot();
  void look_after(std::string_view slot);
  std::uint64_t slots_in_file() const noexcept;
  std::string read_slot(std::uint64_t slot) const;
  LoadGuard mark(Doing doing, const Digest& digest);
  void unmark(std::size_t place) noexcept;
  void release(std::uint64_t byte) noexcept;

  DeviceFolder& folder_;
  const ProcessSharing& sharing_;
  const Log log_;
  const OnOrphan on_orphan_;
  std::mutex mutex_;  // guards opening and leased_
  std::atomic<State> state_{State::unopened};
  UniqueFd file_;                        // set once, before state_ becomes open
  std::optional<std::uint64_t> slot_;    // set once; empty: all slots are in use, so no marks
  std::atomic<std::uint32_t> marks_{0};  // bit n: place n of the slot is in use
  std::set<std::uint64_t> leased_;  // bytes leased by this process, because a lock does not exclude its own open file
};

// BuildLease: decides whether this process builds a missing program or uses the build of another process.
//
// Thread-safety: call acquire_lease() from any thread, but for one key from one thread at a time.
// Ownership: the lease is held until the BuildLease is destroyed; its ProcessTable must outlive it.
// Every wait is bounded by the request's patience.

// What to do while another thread or process builds the program.
enum class IfBusy : std::uint8_t { invalid = 0, wait, leave };

enum class LeaseState : std::uint8_t {
  invalid = 0,
  ours,       // this process builds
  published,  // another process has stored it: load it
  busy,       // another process builds it, and the request does not wait
};

struct BuildLease {
  LeaseState state = LeaseState::ours;
  Lease lease{Lease::State::none};  // none: built without a lease
};

struct LeaseRequest {
  const Digest& digest;
  IfBusy if_busy = IfBusy::wait;
  std::chrono::nanoseconds patience{};
  // Returns whether the program can be found now.
  const std::function<bool()>& published;
};

// Also counts each wait and its outcome in `counters`.
BuildLease acquire_lease(ProcessTable& table, const LeaseRequest& request, CacheCounters& counters);

}  // namespace kiln
