// The text of one slot of the file `processes`: which process has it, and what it is doing with which program.
//
// Thread-safety: pure. Ownership: values. Text of a fixed width, so that people can read the file and a process can
// overwrite one mark without touching another:
//
//   header  "process PID since SECONDS", blanks, newline                                            (128 bytes)
//   marks   20 times "loading  DIGEST SECONDS" or "building DIGEST SECONDS" or nothing, blanks, newline (96 each)
// Seconds are since 1970. Bytes that are no such text stand for nothing: whoever can write them is this user.
#pragma once

#include "base/os/file_lock.hpp"
#include "cache/device_folder.hpp"

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
  loading,   // its driver was given the stored bytes and has not answered yet
  building,  // it holds the lease
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

// A whole slot without marks. pid 0: nobody's.
std::string encode_slot(long pid, std::int64_t since_s);
std::optional<long> pid_of_slot(std::string_view slot) noexcept;
std::vector<ProcessMark> marks_of_slot(std::string_view slot);

// ProcessTable: the file `processes` of one device's folder, by which processes that use the folder tell each other
// what they are doing. It names nothing that is relied upon: what counts are locks on single bytes of it, which the
// kernel lets go when their process dies, however it dies.
//
//   byte (first 62 bits of a digest)   locked: a process builds that program            → Lease
//   byte 2^62 + n                      locked: the process of slot n lives              → its marks are not orphans
//   the text of slot n                 process_slot.hpp
//
// So nothing accumulates and nothing is to be swept: a process takes over the first slot that is nobody's. Where the
// file cannot be had or its filesystem's locks cannot be trusted, every answer is "no lease" and "no mark", and that is
// said once. Thread-safety: every method from any thread. Ownership: owns its descriptor, borrows the folder. REQUIRES:
// outlives its leases and marks.

// How a cache shares its work with other processes. Tests put other values in.
struct ProcessSharing {
  // The longest wait for a program that another process builds. A build takes up to some seconds; a process that was
  // stopped takes for ever.
  std::chrono::nanoseconds patience = std::chrono::seconds(5);
  std::function<Result<FilesystemMagic>(int file)> filesystem = &filesystem_of;
  // The longest wait for a program that another thread of this process makes. Longer than for a process: that thread
  // may itself be waiting for one, or stand in line for the driver, and who gives up here has no program.
  std::chrono::nanoseconds flight_patience = std::chrono::seconds(30);
  // The longest first dispatch of a stored program with driver files. A driver loads machine code in milliseconds;
  // where its files do not fit it generates the code, in seconds.
  std::chrono::nanoseconds dispatch_patience = std::chrono::seconds(30);
};

class ProcessTable;

// A mark stands in this process's slot as long as this lives; empty where there was no room or no table.
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

// The right to build one program, as long as this lives.
class Lease {
 public:
  enum class State : std::uint8_t {
    invalid = 0,
    held,
    busy,  // somebody else has it
    none,  // there are no leases here: everybody builds for himself
  };

  explicit Lease(State state) noexcept : state_(state) {}
  Lease(Lease&& other) noexcept;
  Lease& operator=(Lease&& other) noexcept;
  ~Lease();

  State state() const noexcept { return state_; }

 private:
  friend class ProcessTable;
  Lease(ProcessTable& table, std::uint64_t byte, LoadGuard mark) noexcept
      : state_(State::held), table_(&table), byte_(byte), mark_(std::move(mark)) {}

  State state_;
  ProcessTable* table_ = nullptr;  // set where it is held
  std::uint64_t byte_ = 0;
  LoadGuard mark_;
};

class ProcessTable {
 public:
  // Called for each program that a process died loading, before the first answer after the file was opened.
  using OnOrphan = std::function<void(const ProcessMark& mark)>;

  ProcessTable(DeviceFolder& folder, const ProcessSharing& sharing, Log log, OnOrphan on_orphan);
  ~ProcessTable();

  // Looks after orphans, where there is a table already. Cheap when called again.
  void attend() { static_cast<void>(open(Create::no)); }

  Lease try_lease(const Digest& digest);
  // To be held while a driver is given the stored bytes of the program.
  LoadGuard loading(const Digest& digest);
  // The process that has marked the program as being built, for messages.
  std::optional<long> builder_of(const Digest& digest);

 private:
  friend class LoadGuard;
  friend class Lease;

  enum class State : std::uint8_t { invalid = 0, unopened, open, off };

  State open(Create create);
  State switch_off(const std::string& why);
  // Takes a slot over for this process, and looks after those that are nobody's. REQUIRES: mutex_ is held.
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
  std::mutex mutex_;  // for opening, and for leased_
  std::atomic<State> state_{State::unopened};
  UniqueFd file_;                        // set once, before state_ is open
  std::optional<std::uint64_t> slot_;    // likewise; empty: too many processes, so no marks
  std::atomic<std::uint32_t> marks_{0};  // bit n: place n of the slot is in use
  std::set<std::uint64_t> leased_;       // bytes: an open file does not hinder itself
};

}  // namespace kiln
