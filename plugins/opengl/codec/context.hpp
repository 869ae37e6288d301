// OpenGL as the codec sees it: the table of functions, error codes, and the context that is current.
#pragma once

#include <glad/gl.h>

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/device.hpp>
#include <kiln/driver_notes.hpp>
#include <kiln/status.hpp>

namespace kiln::opengl {

// The names of OpenGL's error and reset codes, and the table of OpenGL's functions under a short name.
//
// Thread-safety: free functions; those that ask OpenGL run on a context's thread.

using Gl = GladGLContext;  // one table a share group, filled from eglGetProcAddress; constant afterwards

std::string error_name(GLenum error);         // "GL_INVALID_VALUE"
std::string reset_name(GLenum reset_status);  // "GL_GUILTY_CONTEXT_RESET"

// Takes every recorded error off the context. ok where there was none; GL_OUT_OF_MEMORY is unavailable, GL_CONTEXT_LOST
// is device_lost and anything else internal, each with its name and what was being done.
Status take_errors(const Gl& gl, std::string_view doing);

// CurrentContext: an OpenGL context that is current on the calling thread, as the codec sees it: whose it is and which
// thread it lives on is not the codec's business.
//
// Thread-safety: used on the context's thread only. Ownership: borrows the table of functions.
struct CurrentContext {
  const Gl& gl;
  std::string id;  // the device's, for messages
  DeviceKind kind = DeviceKind::invalid;
  bool mesa = false;                                    // Mesa's names carry versions in parentheses
  std::function<Status(std::string_view doing)> check;  // the errors since the last check
};

// What a context says about its device, and the canary program that makes the driver identify itself.

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
