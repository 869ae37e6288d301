// The canary: the smallest program, made only to learn what the driver says of itself through its program binaries.
//
// Compiling it would start the driver's whole compiler in every process, so its binary is kept as a note and offered
// back: a driver takes a binary only if it is the one that made it. Thread-safety: on a context's thread.
#pragma once

#include "gl/gl_error.hpp"

#include <kiln/driver_notes.hpp>

#include <cstddef>
#include <string_view>
#include <vector>

namespace kiln::opengl {

struct Canary {
  GLenum format = 0;
  std::vector<std::byte> binary;  // empty: the driver gives no binaries
};

// `driver`: vendor, renderer and version in words. `notes` may be null.
Canary read_canary(const Gl& gl, const std::vector<GLenum>& formats, std::string_view driver, DriverNotes* notes);

}  // namespace kiln::opengl
