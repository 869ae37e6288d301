// The families of gemm: in registers, and with shared memory.
//
// Products of matrices without shared memory: the register-blocked kernel, and the plain one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/device.hpp>
#include <kiln/kernel.hpp>

#include "dynamic_shaders/kernel_writer.hpp"

namespace kiln::dynamic_shaders {

// gemm/blocked: a matrix product with a block of it in the registers of each lane: some rows, and quads of four
// columns.
//
// Neighbouring lanes differ in their columns: what they load of the second factor lies side by side, and what they load
// of the first is the same for all of them. A loaded quad serves every row, four loaded depths every column. One pass;
// where the columns are no multiple of four a `prepare` pass first pads the second factor's rows, once for a Constant.
// Thread-safety: pure functions. Ownership: values.

struct GemmBlocking {
  std::int64_t rows = 0;       // of a lane
  std::int64_t quads = 0;      // of a lane; one workgroup's width apart
  std::int64_t workgroup = 0;  // lanes
  View view = View::invalid;   // of both factors; where the depth is no multiple of four, of the second alone

  bool operator==(const GemmBlocking&) const = default;
};

// "gemm/blocked:rows=8,quads=1,view=texels,workgroup=16"
std::string gemm_variant(const GemmBlocking& blocking);
std::optional<GemmBlocking> gemm_blocking_of(std::string_view variant);  // absent: not written so by gemm_variant()

// Of the second factor as it is loaded: texels of a row.
std::int64_t quads_of(const GemmSpec& spec) noexcept;

// ok: the device has such views, and they hold either factor.
Status check_view(const GemmSpec& spec, View view, const DeviceInfo& device);
// unsupported, saying what does not hold; ok: such a kernel can be written, compiles on the device and can be launched
// there.
Status check(const GemmSpec& spec, const GemmBlocking& blocking, const DeviceInfo& device);

Result<KernelPlan> gemm_blocked(const GemmSpec& spec, const GemmBlocking& blocking, const DeviceInfo& device,
                                const Form& form);

// gemm/plain: a matrix product as it is defined, one element a lane, n and k as constants of the text.
//
// A sum too long for one pass (limits.hpp) is split along k into passes that go on in the output.
// Thread-safety: a pure function. Ownership: the plan is a value.

Result<KernelPlan> gemm_plain(const GemmSpec& spec, const DeviceInfo& device, const Form& form);

// gemm/shared: a matrix product whose factors the lanes of a workgroup load into shared memory together.
//
// A workgroup computes a tile of the product, each lane some neighbouring rows of some columns, the columns one
// workgroup's width apart. A round loads a step of both factors, each value once a workgroup, zeros beyond their edges.
// Both factors are read as they lie, without views or a `prepare` pass. A sum too long for one pass (limits.hpp) is
// split along k into passes that go on in the output. Thread-safety: pure functions. Ownership: values.

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
