// InFlight: one submission from the moment the kernel driver has it until its result is known. It pins all that the GPU
// may still touch.
//
// Thread-safety: one thread at a time. Ownership: shares kernels, buffers and context.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "amdgpu_pm4/device/program/program.hpp"
#include "amdgpu_pm4/winsys/winsys.hpp"

namespace kiln::amdgpu_pm4 {

// Stamps of the device's clock, in memory that the GPU writes: at the start, then after each stretch of passes. 0: not
// reached.
class Stamps {
 public:
  Stamps() = default;
  // Makes them all 0.
  Stamps(std::span<std::byte> memory, std::uint64_t address);

  static std::uint64_t bytes_of(std::size_t stretches) { return (stretches + 1) * sizeof(std::uint64_t); }
  std::uint64_t address_of(std::size_t i) const noexcept { return address_ + i * sizeof(std::uint64_t); }
  std::uint64_t operator[](std::size_t i) const noexcept;
  std::size_t size() const noexcept { return count_; }
  std::uint64_t first() const noexcept { return (*this)[0]; }
  std::uint64_t last() const noexcept { return (*this)[count_ - 1]; }

 private:
  std::byte* memory_ = nullptr;
  std::uint64_t address_ = 0;
  std::size_t count_ = 0;
};

struct InFlight {
  std::uint64_t value = 0;  // on the queue's timeline
  std::shared_ptr<Context> context;
  std::uint64_t number = 0;                                  // in the context
  std::vector<std::shared_ptr<const LoadedKernel>> kernels;  // one a pass
  std::vector<std::size_t> stretch_ends;                     // index past the last pass of each
  std::vector<std::shared_ptr<BufferObject>> buffers;
  Stamps stamps;

  // The passes that were begun and not ended when the device stopped, [begin, end): empty where it never began, or all
  // had ended.
  struct Passes {
    std::size_t begin = 0;
    std::size_t end = 0;
  };
  Passes unfinished() const noexcept;
};

}  // namespace kiln::amdgpu_pm4
