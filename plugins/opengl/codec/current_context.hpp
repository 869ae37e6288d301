// CurrentContext: an OpenGL context that is current on the calling thread, as the codec sees it: whose it is and which
// thread it lives on is not the codec's business.
//
// Thread-safety: used on the context's thread only. Ownership: borrows the table of functions.
#pragma once

#include "gl/gl_error.hpp"

#include <kiln/device.hpp>

#include <functional>
#include <string>
#include <string_view>

namespace kiln::opengl {

struct CurrentContext {
  const Gl& gl;
  std::string id;  // the device's, for messages
  DeviceKind kind = DeviceKind::invalid;
  bool mesa = false;                                    // Mesa's names carry versions in parentheses
  std::function<Status(std::string_view doing)> check;  // the errors since the last check
};

}  // namespace kiln::opengl
