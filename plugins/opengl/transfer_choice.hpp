// Which way the host's bytes take to a device's buffers: what [plugin.opengl] says, else the faster one.
//
// Both are measured once for a driver and its device, and the choice is kept as a note for the processes after this
// one. Thread-safety: any thread, one at a time. Ownership: borrows everything.
#pragma once

#include "objects/buffer.hpp"
#include "settings.hpp"

#include <kiln/device.hpp>
#include <kiln/driver_notes.hpp>

namespace kiln::opengl {

// notes: null where nothing can be kept: then nothing is measured either, and the kind of the device decides.
Transfer choose_transfer(const std::shared_ptr<ContextGroup>& group, Mapping wanted, const DeviceInfo& info,
                         DriverNotes* notes);

}  // namespace kiln::opengl
