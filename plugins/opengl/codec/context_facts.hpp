// What a context says about its device, and the canary program that makes the driver identify itself.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include <kiln/driver_notes.hpp>

#include "codec/gl_error.hpp"

namespace kiln::opengl {

// What a context tells about its device: names, limits, and the identity that goes into program keys.
//
// Thread-safety: runs on the context's thread. Ownership: values.

struct Facts {
  DeviceInfo info;                     // everything but driver_cache
  std::vector<GLenum> binary_formats;  // what glProgramBinary takes; empty: this driver keeps nothing
};

// By way of the canary: whether its binary has bytes decides DeviceInfo::serializes, and Mesa's own SHA-1 of the driver
// stands in the header of that binary. It is not counted as a build. `notes` may be null.
Result<Facts> read_facts(const CurrentContext& context, DriverNotes* notes);

// The canary: the smallest program, made only to learn what the driver says of itself through its program binaries.
//
// Compiling it would start the driver's whole compiler in every process, so its binary is kept as a note and offered
// back: a driver takes a binary only if it is the one that made it. Thread-safety: on a context's thread.

struct Canary {
  GLenum format = 0;
  std::vector<std::byte> binary;  // empty: the driver gives no binaries
};

// `driver`: vendor, renderer and version in words. `notes` may be null.
Canary read_canary(const Gl& gl, const std::vector<GLenum>& formats, std::string_view driver, DriverNotes* notes);

}  // namespace kiln::opengl
