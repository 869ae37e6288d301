// Submitter: a driver of the simulated card that is given many small dispatches, y[i] += 1 for 64 lanes, and is timed.
// Thread-safety: one thread. Ownership: the caller owns it; it owns device, program and buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace kiln::bench {

constexpr std::uint32_t lanes = 64;
constexpr std::size_t most_buffers = 16;

class Submitter {
 public:
  Submitter() = default;
  Submitter(const Submitter&) = delete;
  Submitter& operator=(const Submitter&) = delete;
  virtual ~Submitter() = default;

  virtual std::string name() = 0;

  // One submission of that many dispatches, to `buffers` buffers in turns, each after what it depends on; then, outside
  // the time, waits for its end. The time, in ns: what the calling thread took, less the kernel's part.
  // Throws std::runtime_error where the driver refuses.
  virtual std::uint64_t submit(std::size_t dispatches, std::size_t buffers) = 0;

  // Throws std::runtime_error where a buffer holds another sum than what was submitted.
  virtual void check() = 0;
};

// Time that the calling thread has spent in the kernel's interface: this program's ioctl() stands in front of all
// others. Thread-safety: any thread, each its own time. Ownership: none.

std::uint64_t in_kernel_ns() noexcept;
// And how often it called.
std::uint64_t kernel_calls() noexcept;

// A plugin of Kiln as a Submitter.

// amdgpu_pm4: its first simulated device. vulkan: its first device.
enum class KilnPlugin : std::uint8_t { invalid = 0, amdgpu_pm4, vulkan };

// Throws std::runtime_error where there is no such device.
std::unique_ptr<Submitter> make_kiln_submitter(KilnPlugin plugin);

// Raw calls of Vulkan as a Submitter: the peer, on RADV beside the plugin amdgpu_pm4, on any driver beside vulkan.

// anew: recorded for each submission. again: recorded once for equal submissions.
enum class Commands : std::uint8_t { invalid = 0, anew, again };

// Null where Vulkan was not there when this was built, or RADV is not; `absent` then says why.
// Throws std::runtime_error where RADV is there and fails.
std::unique_ptr<Submitter> make_radv_submitter(Commands commands, std::string& absent);

// The first device of the driver that the environment chose. Throws where there is none.
std::unique_ptr<Submitter> make_raw_vulkan_submitter(Commands commands);

}  // namespace kiln::bench
