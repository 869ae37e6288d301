// Device checks: check buffers and grids against the limits of a device, with the same errors for every device.
//
// Thread-safety: pure functions.
//
//   if (kiln::Status status = kiln::check_buffer(info(), desc); !status.ok()) return status;
#pragma once

#include <kiln/buffer.hpp>
#include <kiln/device.hpp>
#include <kiln/status.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace [[gnu::visibility("default")]] kiln {

// unsupported: the device cannot use the host memory, imported descriptor or other buffer in `desc`.
// invalid_argument: no usage, or a size of 0 or above DeviceInfo::max_buffer_bytes.
Status check_buffer(const DeviceInfo& info, const BufferDesc& desc);
// pass: index of the pass, for the message. invalid_argument: an axis is too large or empty, or the indirect grid is
// wrong; the error has the details. unsupported: the device does not support indirect grids. A caller that accepts empty
// grids must not call this for them.
Status check_grid(const DeviceInfo& info, std::size_t pass, const PassLaunch& launch);
// Checks the counts that the device read for PassLaunch::indirect. most: DeviceInfo::max_grid. invalid_argument: a count is
// above `most`.
Status check_counts(std::size_t pass, const std::array<std::uint32_t, 3>& counts,
                    const std::array<std::uint32_t, 3>& most);

}  // namespace kiln
