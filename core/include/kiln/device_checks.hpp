// What every device refuses in the same words: a buffer that it cannot have, and a grid that it cannot run.
//
// Thread-safety: pure functions.
//
//   if (kiln::Status status = kiln::check_buffer(info(), desc); !status.ok()) return status;
#pragma once

#include <kiln/buffer.hpp>
#include <kiln/device.hpp>
#include <kiln/status.hpp>

#include <cstddef>

namespace [[gnu::visibility("default")]] kiln {

// unsupported: host memory or an imported descriptor, for a device without that ability. invalid_argument: usage or
// size.
Status check_buffer(const DeviceInfo& info, const BufferDesc& desc);
// `pass` is the index of the pass, for the message. invalid_argument: names the axis that is too large or empty. A
// caller that accepts empty grids does not call this for them.
Status check_grid(const DeviceInfo& info, std::size_t pass, const PassLaunch& launch);

}  // namespace kiln
