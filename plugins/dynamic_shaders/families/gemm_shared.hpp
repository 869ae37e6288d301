// gemm/shared: a matrix product whose factors the lanes of a workgroup load into shared memory together.
//
// A workgroup computes a tile of the product, each lane some neighbouring rows of some columns, the columns one
// workgroup's width apart. A round loads a step of both factors, each value once a workgroup, zeros beyond their edges.
// Both factors are read as they lie, without views or a `prepare` pass. A sum too long for one pass (limits.hpp) is
// split along k into passes that go on in the output. Thread-safety: pure functions. Ownership: values.
#pragma once

#include <kiln/device.hpp>
#include <kiln/kernel.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "dynamic_shaders/dialect/kernel_writer.hpp"

namespace kiln::dynamic_shaders {

struct GemmTile {
  std::int64_t rows = 0;     // of a lane, a multiple of 4
  std::int64_t columns = 0;  // of a lane
  std::int64_t lanes_r = 0;  // of the workgroup
  std::int64_t lanes_c = 0;
  std::int64_t depth = 0;  // of a step

  std::int64_t lanes() const noexcept { return lanes_r * lanes_c; }
  std::int64_t tile_rows() const noexcept { return rows * lanes_r; }
  std::int64_t tile_columns() const noexcept { return columns * lanes_c; }
  bool operator==(const GemmTile&) const = default;
};

// "gemm/shared:rows=8,columns=4,lanes_r=8,lanes_c=16,depth=8"
std::string gemm_tile_variant(const GemmTile& tile);
std::optional<GemmTile> gemm_tile_of(std::string_view variant);  // absent: not written so by gemm_tile_variant()

// Bytes of shared memory that a workgroup takes.
std::int64_t shared_bytes(const GemmTile& tile) noexcept;
// Passes that the sum needs.
std::int64_t passes_of(const GemmSpec& spec, const GemmTile& tile) noexcept;

// unsupported, saying what does not hold; ok: such a kernel can be written, compiles on the device and can be launched
// there.
Status check(const GemmSpec& spec, const GemmTile& tile, const DeviceInfo& device);

Result<KernelPlan> gemm_shared(const GemmSpec& spec, const GemmTile& tile, const DeviceInfo& device, const Form& form);

}  // namespace kiln::dynamic_shaders
