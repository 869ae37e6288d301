// OpenGL as the codec sees it: the table of functions, error codes, and the context that is current.
#pragma once

#include <glad/gl.h>

#include <functional>
#include <string>
#include <string_view>

#include <kiln/device.hpp>
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

}  // namespace kiln::opengl
