// The device as the kernel drives it, and its answers.
//
// Answer: what an ioctl of the simulated kernel driver comes to: nothing where it went well, else the error number that
// the kernel gives and the reason in words, which goes to the journal. A refusal without words is an ordinary answer of
// the interface (a wait that ran out of time).
//
// Thread-safety and ownership: values.
#pragma once

#include <array>
#include <chrono>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/kernel/buffer.hpp"
#include "simulator/kernel/engine.hpp"
#include "simulator/kernel/fence.hpp"
#include "simulator/kernel/file_descriptor.hpp"
#include "simulator/kernel/settings.hpp"

namespace kiln::simulator::kernel {

struct Refusal {
  int error = 0;  // positive errno
  std::string reason;
};

using Answer = std::optional<Refusal>;

inline Answer refuse(int error, std::string reason = {}) { return Refusal{error, std::move(reason)}; }

// "0x1f"
inline std::string hex(std::uint64_t value) {
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "0x%" PRIx64, value);
  return text.data();
}

// Device: what the open files of one simulated device share; its journal; and waits on its state.

// Journal: the lines that the simulated device writes where a kernel would write to its log: what it refused and why,
// faults, resets; on demand every ioctl. Keeps the text of the last fault for whoever asks.
//
// Thread-safety: any thread. Ownership: owns its file.

class Journal {
 public:
  // Lines are appended to `path`; to the standard error stream where it is empty or cannot be opened.
  explicit Journal(const std::string& path);
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  void write(std::string_view line) noexcept;  // one line, whole even where processes share the file
  void fault(std::string text);                // a line, and the last fault from now on
  std::string last_fault() const;              // empty where there was none

 private:
  UniqueFd file_;
  mutable std::mutex mutex_;
  std::string last_fault_;
};

// Device: what the open files of one simulated device share: its figures, memory heaps, reset counters, fences and
// rings. One lives for each device, not for each file.
//
// Thread-safety: `mutex` guards everything that is not const; each method says whether it is REQUIRED.
// Ownership: shared by the files; owns rings and engine, and ends their threads in the destructor, when no file is
// left.

class Rings;

struct DeviceCounters {
  std::uint64_t submissions = 0;      // that reached the driver, refused ones among them
  std::uint64_t buffers_created = 0;  // asked for
  std::uint32_t resets = 0;
  std::uint32_t vram_losses = 0;
};

class Device {
 public:
  Device(Settings settings_in, std::unique_ptr<Engine> engine);
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  ~Device();

  const Settings settings;
  const Target& target;
  Journal journal;
  const std::shared_ptr<HeapUse> heap_use = std::make_shared<HeapUse>();

  std::mutex mutex;
  // The rest REQUIRES mutex.
  DeviceCounters counters;
  bool unplugged = false;
  bool in_reset = false;
  FenceBoard fences;
  Descriptors descriptors{fences};
  std::map<Inode, std::weak_ptr<Buffer>> exported;  // buffers that a descriptor may lead to

  std::uint64_t next_buffer_id() { return ++last_buffer_id_; }
  std::uint64_t take_map_offset(std::uint64_t bytes);
  void register_buffer(const BufferPtr& buffer);
  void lose_video_memory();

  // The clock that packets and queries read: ticks of the device's counter.
  std::uint64_t clock_ticks() const;
  Rings& rings() noexcept { return *rings_; }

 private:
  std::uint64_t last_buffer_id_ = 0;
  std::uint64_t next_map_offset_;
  std::vector<std::weak_ptr<Buffer>> buffers_;
  std::unique_ptr<Rings> rings_;
};

// Deadline: until when an ioctl waits, from the three forms in which the interface says so. wait_until waits for a
// condition on the device with its mutex let go.
//
// Thread-safety and ownership: values; wait_until REQUIRES `lock` to hold the device's mutex.

class Deadline {
 public:
  // Of the driver's own ioctls: nanoseconds of the monotonic clock; negative as a signed number: for ever.
  static Deadline of_driver(std::uint64_t nanoseconds) noexcept {
    return Deadline(static_cast<std::int64_t>(nanoseconds) < 0 ? for_ever : static_cast<std::int64_t>(nanoseconds));
  }
  // Of the sync objects: likewise, but what lies in the past, negative ones among it, only looks.
  static Deadline of_sync_objects(std::int64_t nanoseconds) noexcept { return Deadline(nanoseconds); }
  static Deadline in(std::chrono::nanoseconds from_now) noexcept { return Deadline(now() + from_now.count()); }

  bool passed() const noexcept { return now() >= at_; }
  // For one sleep: far deadlines are reached in several.
  std::chrono::steady_clock::time_point next_look() const noexcept {
    constexpr std::int64_t longest = 3'600'000'000'000;
    const std::int64_t start = now();
    const std::int64_t end = at_ - start > longest ? start + longest : at_;
    return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(end));
  }

 private:
  static constexpr std::int64_t for_ever = INT64_MAX;

  explicit Deadline(std::int64_t at) noexcept : at_(at) {}
  // The steady clock of this standard library is CLOCK_MONOTONIC, which the interface counts in.
  static std::int64_t now() noexcept {
    return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
  }

  std::int64_t at_;
};

// Whether the condition came true in time. A device that is gone ends the wait: the caller looks at `unplugged`.
template <class Condition>
bool wait_until(Device& device, std::unique_lock<std::mutex>& lock, const Deadline& deadline, Condition condition) {
  while (!condition()) {
    if (device.unplugged || deadline.passed()) return false;
    device.fences.changed.wait_until(lock, deadline.next_look());
  }
  return true;
}

}  // namespace kiln::simulator::kernel
