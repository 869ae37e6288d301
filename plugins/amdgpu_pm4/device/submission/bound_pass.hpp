// BoundPass: a launch of the contract, checked and bound to this device's objects.
//
// Thread-safety and ownership: values; they share what they refer to.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "amdgpu_pm4/device/program/program.hpp"
#include "amdgpu_pm4/winsys/winsys.hpp"

namespace kiln::amdgpu_pm4 {

struct BoundPass {
  std::shared_ptr<const LoadedKernel> kernel;
  std::vector<std::shared_ptr<BufferObject>> buffers;  // one a binding
  std::array<std::uint32_t, 3> grid{};                 // never nothing: such launches are left out
  std::vector<std::byte> values{};                     // of the arguments by value, one behind the other
  std::vector<std::uint64_t> local_bytes{};            // one an argument that points to local memory
  std::optional<RecordedDispatch> recorded{};          // in place of the kernel's: with that local memory
};

}  // namespace kiln::amdgpu_pm4
