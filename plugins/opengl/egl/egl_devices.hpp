// EglDevice: one entry of what EGL lists, told apart by what extensions say and not by a vendor's name.
//
// Thread-safety: free functions over an immutable EglApi. Ownership: EGL's device and display handles belong to the
// process. A display is never terminated: another user of EGL in this process may hold the very same one.
#pragma once

#include "egl/egl_api.hpp"

#include <kiln/device.hpp>

#include <string>
#include <vector>

namespace kiln::opengl {

struct EglDevice {
  EGLDeviceEXT device = EGL_NO_DEVICE_EXT;  // none: the surfaceless platform's default device
  DeviceKind kind = DeviceKind::invalid;    // invalid: known only once its display is open
  std::string node;                         // render node or device file; empty: none
};

// Hardware first, then simulated, then software; EGL's own order within each. Opens no display.
std::vector<EglDevice> list_devices(const EglApi& api);

struct EglDisplay {
  EGLDisplay handle = EGL_NO_DISPLAY;
  DeviceKind kind = DeviceKind::invalid;  // never invalid: what the open display says
  bool mesa = false;
};

// unavailable, naming the call and EGL's error, or the extension that is missing.
Result<EglDisplay> open_display(const EglApi& api, const EglDevice& device);

}  // namespace kiln::opengl
