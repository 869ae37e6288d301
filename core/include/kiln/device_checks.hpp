// What every device refuses in the same words: a buffer that it cannot have, and a grid that it cannot run.
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

// unsupported: the device cannot use the host memory, imported descriptor or other buffer that `desc` names.
// invalid_argument: no usage, or a size of 0 or above DeviceInfo::max_buffer_bytes.
Status check_buffer(const DeviceInfo& info, const BufferDesc& desc);
// `pass` is the index of the pass, for the message. invalid_argument: names the axis that is too large or empty, or
// what is wrong with an indirect grid. unsupported: the device takes none. A caller that accepts empty grids does not
// call this for them.
Status check_grid(const DeviceInfo& info, std::size_t pass, const PassLaunch& launch);
// The counts that the pass read with PassLaunch::indirect. invalid_argument: one is above `most`, DeviceInfo::max_grid.
Status check_counts(std::size_t pass, const std::array<std::uint32_t, 3>& counts,
                    const std::array<std::uint32_t, 3>& most);

}  // namespace kiln
