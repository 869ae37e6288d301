// What a context tells about its device: names, limits, and the identity that goes into program keys.
//
// Thread-safety: runs on the context's thread. Ownership: values.
#pragma once

#include "codec/current_context.hpp"

#include <vector>

namespace kiln::opengl {

struct Facts {
  DeviceInfo info;                     // everything but driver_cache
  std::vector<GLenum> binary_formats;  // what glProgramBinary takes; empty: this driver keeps nothing
};

// By way of the canary: whether its binary has bytes decides DeviceInfo::serializes, and Mesa's own SHA-1 of the driver
// stands in the header of that binary. It is not counted as a build. `notes` may be null.
Result<Facts> read_facts(const CurrentContext& context, DriverNotes* notes);

}  // namespace kiln::opengl
