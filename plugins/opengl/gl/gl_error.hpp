// The names of OpenGL's error and reset codes, and the table of OpenGL's functions under a short name.
//
// Thread-safety: free functions; those that ask OpenGL run on a context's thread.
#pragma once

#include <glad/gl.h>
#include <kiln/status.hpp>

#include <string>
#include <string_view>

namespace kiln::opengl {

using Gl = GladGLContext;  // one table a share group, filled from eglGetProcAddress; constant afterwards

std::string error_name(GLenum error);         // "GL_INVALID_VALUE"
std::string reset_name(GLenum reset_status);  // "GL_GUILTY_CONTEXT_RESET"

// Takes every recorded error off the context. ok where there was none; GL_OUT_OF_MEMORY is unavailable, GL_CONTEXT_LOST
// is device_lost and anything else internal, each with its name and what was being done.
Status take_errors(const Gl& gl, std::string_view doing);

}  // namespace kiln::opengl
