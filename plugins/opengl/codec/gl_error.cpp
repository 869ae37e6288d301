#include "codec/gl_error.hpp"

#include <cstdio>

namespace kiln::opengl {
namespace {

std::string hexadecimal(GLenum value) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%04x", value);
  return text;
}

}  // namespace

std::string error_name(GLenum error) {
  switch (error) {
    case GL_NO_ERROR:
      return "GL_NO_ERROR";
    case GL_INVALID_ENUM:
      return "GL_INVALID_ENUM";
    case GL_INVALID_VALUE:
      return "GL_INVALID_VALUE";
    case GL_INVALID_OPERATION:
      return "GL_INVALID_OPERATION";
    case GL_INVALID_FRAMEBUFFER_OPERATION:
      return "GL_INVALID_FRAMEBUFFER_OPERATION";
    case GL_OUT_OF_MEMORY:
      return "GL_OUT_OF_MEMORY";
    case GL_STACK_OVERFLOW:
      return "GL_STACK_OVERFLOW";
    case GL_STACK_UNDERFLOW:
      return "GL_STACK_UNDERFLOW";
    case GL_CONTEXT_LOST:
      return "GL_CONTEXT_LOST";
    default:
      return "OpenGL error " + hexadecimal(error);
  }
}

std::string reset_name(GLenum reset_status) {
  switch (reset_status) {
    case GL_NO_ERROR:
      return "GL_NO_ERROR";
    case GL_GUILTY_CONTEXT_RESET:
      return "GL_GUILTY_CONTEXT_RESET";
    case GL_INNOCENT_CONTEXT_RESET:
      return "GL_INNOCENT_CONTEXT_RESET";
    case GL_UNKNOWN_CONTEXT_RESET:
      return "GL_UNKNOWN_CONTEXT_RESET";
    default:
      return "reset status " + hexadecimal(reset_status);
  }
}

Status take_errors(const Gl& gl, std::string_view doing) {
  const GLenum first = gl.GetError();
  if (first == GL_NO_ERROR) return {};
  // A lost context may answer GL_CONTEXT_LOST for ever: never drain without a bound.
  GLenum next = first;
  for (int drained = 0; drained < 16 && next != GL_NO_ERROR && next != GL_CONTEXT_LOST; ++drained) next = gl.GetError();
  std::string message = std::string(doing) + ": " + error_name(first);
  if (first == GL_CONTEXT_LOST || next == GL_CONTEXT_LOST) return device_lost(std::move(message));
  if (first == GL_OUT_OF_MEMORY) return unavailable(std::move(message));
  return internal_error(std::move(message));
}

}  // namespace kiln::opengl
