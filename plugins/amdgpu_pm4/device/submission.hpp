// What one submission consists of: its passes in order, the buffers that it lists, and what it keeps alive.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "amdgpu_pm4/device/program.hpp"
#include "amdgpu_pm4/device/quarantine.hpp"
#include "amdgpu_pm4/safety/submission_scope.hpp"
#include "amdgpu_pm4/winsys/winsys.hpp"

namespace kiln::amdgpu_pm4 {

// BoundPass: a launch of the contract, checked and bound to this device's objects.
//
// Thread-safety and ownership: values; they share what they refer to.
struct BoundPass {
  std::shared_ptr<const LoadedKernel> kernel;
  std::vector<std::shared_ptr<BufferObject>> buffers;  // one a binding
  std::array<std::uint32_t, 3> grid{};                 // never nothing: such launches are left out
  std::vector<std::byte> values{};                     // of the arguments by value, one behind the other
  std::vector<std::uint64_t> local_bytes{};            // one an argument that points to local memory
  std::optional<RecordedDispatch> recorded{};          // in place of the kernel's: with that local memory
};

// BufferList: the buffers that one submission may use. The kernel driver takes them by handle, each once. The check
// before the submission finds them by address.
//
// Thread-safety: one thread at a time. Ownership: keeps none of the buffers; allocates nothing once it has held as
// many.
class BufferList {
 public:
  void clear();
  void add(const BufferObject& buffer);
  // In order, and each once. REQUIRES: before handles() and ranges().
  void sort();

  std::span<const std::uint32_t> handles() const noexcept { return handles_; }
  std::span<const BufferRange> ranges() const noexcept { return ranges_; }

 private:
  std::vector<std::uint32_t> handles_;
  std::vector<BufferRange> ranges_;
};

// InFlight: one submission from the moment the kernel driver has it until its result is known. It pins all that the GPU
// may still touch.
//
// Thread-safety: one thread at a time. Ownership: shares kernels, buffers and context.

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

// Which passes of a submission may overlap: the passes are cut into groups in their order, and those of one group
// neither read nor write what another of the group writes.
//
// Thread-safety: a pure function. Ownership: values.

// For each group the index past its last pass. A program under suspicion has a group of its own, so that it is known
// which one hung. No passes: no groups.
std::vector<std::size_t> groups_of(std::span<const BoundPass> passes, const Quarantine& quarantine);

}  // namespace kiln::amdgpu_pm4
