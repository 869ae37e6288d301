// Submitter: a driver of the simulated card that is given many small dispatches, y[i] += 1 for 64 lanes, and is timed.
// Thread-safety: one thread. Ownership: the caller owns it; it owns device, program and buffers.
#pragma once

#include <cstddef>
#include <cstdint>
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

}  // namespace kiln::bench
